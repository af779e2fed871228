//! Properties of parsing, matching and planning. One module for each subject.

mod config;
