"""All of netbridge on a device that is not the processor, which every machine pretends to have."""
