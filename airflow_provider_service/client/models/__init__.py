"""What the service answers, one module a resource; loaded when first used."""
