"""From rows of z and a few labelled nodes to answers: any classes, any time, in milliseconds."""
