//! The arguments of `allclear audit`.

use std::path::PathBuf;

use clap::Args;

use crate::cli::answer::Format;

#[derive(Debug, Args)]
pub struct AuditArguments {
    /// The log of each member, one file for each, as FILE or MEMBER=FILE; - for standard input
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<String>,
    /// What kubectl get replicasets,controllerrevisions -A -o json printed in the cluster of a member, as MEMBER=FILE
    #[arg(long, value_name = "MEMBER=FILE")]
    pub objects: Vec<String>,
    /// What aws cloudfront get-invalidation, or list-invalidations, printed of a distribution, as E1=FILE
    #[arg(long, value_name = "ID=FILE")]
    pub invalidations: Vec<String>,
    /// List all changes, not only those that have not ended
    #[arg(long)]
    pub changes: bool,
    /// How to print it
    #[arg(short, long, value_enum, default_value = "table")]
    pub output: Format,
}

/// `NAME=FILE`; without a name, the file's own without what follows its first dot.
pub fn named(text: &str) -> (String, PathBuf) {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !name.contains('/') => (name.to_owned(), PathBuf::from(file)),
        _ => {
            let file = PathBuf::from(text);
            let stem = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            (stem.split('.').next().unwrap_or_default().to_owned(), file)
        }
    }
}
