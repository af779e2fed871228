//! The names of people and other systems: hosts, paths, images, distributions.

pub mod account;
pub mod destination;
pub mod distribution;
pub mod group_name;
pub mod host;
pub mod image;
pub mod paths;
pub mod selector;
pub mod ssh_url;
pub mod workload_name;
