//! Which kinds an API server serves, and by which name in URLs.
//! <https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api>
//!
//! Not for whether we may read them.

use serde::Deserialize;

use super::call::{Api, CallError};
use super::failure::{Collection, Resource};
use kernel::answer::PortError;

/// A kind that is served.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Served {
    /// Its name in URLs, a subresource's with a slash.
    #[serde(rename = "name")]
    pub plural: String,
    /// Its name in objects.
    pub kind: String,
    /// Whether its objects are in namespaces.
    #[serde(default)]
    pub namespaced: bool,
}

#[derive(Deserialize)]
struct Resources {
    resources: Option<Vec<Served>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    preferred_version: Option<Version>,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

impl Api {
    /// The kinds of a group in this version; `None` if the group is not served in it.
    ///
    /// # Errors
    /// When the API server cannot be asked.
    pub async fn kinds(&self, group: &str, version: &str) -> Result<Option<Vec<Served>>, PortError> {
        let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        let found: Option<Resources> = self.discover(group, version, path).await?;
        Ok(found.map(|found| found.resources.unwrap_or_default()))
    }

    /// The versions of a group, the preferred one first; none if the group is not served.
    ///
    /// # Errors
    /// When the API server cannot be asked.
    pub async fn versions(&self, group: &str) -> Result<Vec<String>, PortError> {
        let found: Option<Group> = self.discover(group, "any version", format!("/apis/{group}")).await?;
        let Some(Group { preferred_version, versions }) = found else { return Ok(Vec::new()) };
        let mut names: Vec<String> = preferred_version.into_iter().chain(versions).map(|one| one.version).collect();
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        Ok(names)
    }

    async fn discover<T: for<'de> Deserialize<'de>>(
        &self,
        group: &str,
        version: &str,
        path: String,
    ) -> Result<Option<T>, PortError> {
        let resource =
            Resource { group: group.to_owned().into(), version: version.to_owned().into(), plural: "kinds".into() };
        let said = |error: PortError| PortError {
            attempted: format!("failed to ask which kinds of {group} are served"),
            ..error
        };
        let request =
            http::Request::get(path).body(Vec::new()).map_err(|error| PortError::lasting("", error)).map_err(said)?;
        match self.send(Collection::everywhere(resource).attempt("list"), Ok(request)).await {
            Err(failed) if failed.status() == Some(404) => Ok(None),
            answer => answer.and_then(|answer| answer.json().map(Some)).map_err(|CallError { error, .. }| said(error)),
        }
    }
}
