"""Topics as Spark tables and streams. Needs the extra: ``pip install 'headpond[spark]'``.

Imports the client, the record format and the runtime; the broker never imports this package.
"""
