"""What the brokers agree on: the metadata store's content as an image, and everything that changes it.

``keys`` and ``rows`` say how the store is laid out, ``image`` is what the broker reads, ``follower`` keeps it up to
date, ``metadata_writer`` changes the store: plan (pure) -> transaction -> wait until the image has it. Nothing here
does I/O of its own: it all goes through the ``MetadataStore`` port, and a crash loses nothing that was answered.
"""
