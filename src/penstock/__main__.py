from penstock.cli.start import main

raise SystemExit(main())
