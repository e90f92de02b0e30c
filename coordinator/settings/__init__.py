"""Every setting of a broker, a topic, a group and client metrics: what it is, what it may be, what holds."""
