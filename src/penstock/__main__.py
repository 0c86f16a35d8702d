from penstock.cli.main import main

raise SystemExit(main())
