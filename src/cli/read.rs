//! Pipelines and Repos in a few lines, as the lists and the status have them.

pub(crate) mod pipeline_lines;
pub(crate) mod repo_lines;
