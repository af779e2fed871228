//! Properties that hold for every input and every history, found by chance and shrunk by proptest.

mod delivery;
