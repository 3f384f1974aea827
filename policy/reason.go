package policy

// Reason is a closed token that says why a target was settled as it was.
type Reason string
