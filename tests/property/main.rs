//! Properties of the pure half of the program, over generated values: parsing, matching, planning.

mod config;
mod distribution;
mod image;
mod paths;
mod record;
mod site;
