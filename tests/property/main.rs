//! Properties of the pure half of the program, over generated values and histories: parsing, matching, planning, telling.

mod config;
mod delivery;
mod distribution;
mod image;
mod paths;
mod record;
mod site;
