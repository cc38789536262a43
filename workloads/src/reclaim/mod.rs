//! Reclamation schemes: how a structure gives back nodes that other threads may still read.
