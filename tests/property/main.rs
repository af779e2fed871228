//! Properties of the pure half of the program, over generated values: parsing, matching, planning.

mod config;
mod distribution;
mod image;
mod paths;
mod record;
mod site;
//! Properties that hold for every input and every history, found by chance and shrunk by proptest.

mod delivery;
