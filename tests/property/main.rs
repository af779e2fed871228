//! Properties of parsing, matching and planning. One module for each subject.

mod config;
//! Properties of the pure half of the program, over generated values: parsing, matching, planning.

mod distribution;
mod image;
mod paths;
mod record;
mod site;
