"""The Kafka wire protocol without a socket: bytes in, messages out.

``schema/`` says what the messages look like, ``codec`` compiles functions from it, ``apis`` is the table of what can be
asked, ``header`` and ``frame`` are what stands around a message, ``records/`` looks inside the record batches.
"""
