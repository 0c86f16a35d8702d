"""Every message that a client can send or get, one file per API, in the notation of ``headpond.protocol.types``.

The facts are those of Kafka 4.3's own definitions: ``tools/schema_facts.py`` carries them over and checks them.
"""
