//! The step `publish`: the outputs that are named, to their Secret. It alone of a pod's containers has a token for that.
//!
//! No value is said, neither to the controller nor to people.

use std::error::Error;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use clap::Args;

use crate::adapters::kubernetes::outputs::{Place, publish};
use objects::repo::outputs::{FILE_BYTES_MAX, chosen};

#[derive(Debug, Args)]
pub(in crate::cli) struct Publishing {
    /// What the step output wrote
    #[arg(long, value_name = "FILE")]
    outputs: PathBuf,
    /// The folder with a token for the API server, and its authority
    #[arg(long, value_name = "DIR")]
    api: PathBuf,
    /// Where the API server is
    #[arg(long, value_name = "URL", default_value = "https://kubernetes.default.svc")]
    server: String,
    /// The Repo's namespace
    #[arg(long)]
    namespace: String,
    /// Its name
    #[arg(long)]
    repo: String,
    /// The Secret that is written
    #[arg(long)]
    secret: String,
    /// An output that is written
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,
}

impl Publishing {
    /// Writes them; what was done, in words.
    pub(super) fn run(&self) -> Result<String, Box<dyn Error>> {
        let values = chosen(&self.said()?, &self.names)?;
        let Self { api, server, namespace, repo, secret, .. } = self;
        let place = Place { server, api, namespace, repo, secret };
        actix::System::new().block_on(publish(&place, &values))?;
        let count = values.len();
        Ok(format!("{count} {} written to Secret {secret}", if count == 1 { "output was" } else { "outputs were" }))
    }

    /// What `output` wrote. The user's containers can write the folder: a link in it could lead to the token, and a pipe nowhere.
    fn said(&self) -> Result<Vec<u8>, Box<dyn Error>> {
        let unread = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => format!("the step output wrote no {}", self.outputs.display()),
            _ => format!("failed to read {}: {error}", self.outputs.display()),
        };
        if !fs::symlink_metadata(&self.outputs).map_err(unread)?.is_file() {
            return Err(format!("{} is no file", self.outputs.display()).into());
        }
        Ok(super::bounded(&self.outputs, FILE_BYTES_MAX).map_err(unread)?)
    }
}
