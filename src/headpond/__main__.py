from headpond.cli.start import main

raise SystemExit(main())
