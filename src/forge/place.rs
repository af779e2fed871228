//! Where a repository is, and what of its URL the APIs of forges need.

use kernel::names::ssh_url::SshUrl;
use objects::pipeline::proposal::ForgeKind;
use purge::ports::PortError;

/// A repository's URL in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// `https://git.example.com:8443`.
    origin: String,
    /// `git.example.com:8443`, for people and for what is counted by host.
    pub(crate) host: String,
    /// Where the forge lives on its host: ``, or `/gitea`.
    context: String,
    /// The group of the repository, or its groups: `shop`, `shop/teams`.
    pub(crate) owner: String,
    /// Its name there, without `.git`.
    pub(crate) name: String,
}

impl Place {
    /// Reads a URL as git clones it. A repository is `owner/name`; on GitLab the owner is all groups; Bitbucket Server has
    /// `/scm/` before it.
    pub(crate) fn of(forge: ForgeKind, url: &str) -> Result<Self, PortError> {
        let refuse = |why: &str| PortError::lasting("failed to use the URL of the repository", why);
        // Of an address of SSH the pages and the API are at the same host's usual port of HTTPS.
        let by_ssh = SshUrl::is_meant(url).then(|| SshUrl::parse(url)).transpose();
        let by_ssh = by_ssh.map_err(|why| refuse(&why.to_string()))?;
        let web = by_ssh.as_ref().map(SshUrl::web);
        let uri: http::Uri = web.as_deref().unwrap_or(url).parse().map_err(|_no_uri| refuse("it is no URL"))?;
        let scheme = uri.scheme_str().filter(|scheme| ["http", "https"].contains(scheme));
        let (Some(scheme), Some(authority)) = (scheme, uri.authority()) else {
            return Err(refuse("only https://HOST/OWNER/NAME and ssh://USER@HOST/OWNER/NAME are understood"));
        };
        if authority.as_str().contains('@') || uri.query().is_some() {
            return Err(refuse("it holds a user, a password or a query; credentials belong into the Secret"));
        }
        let path = by_ssh.as_ref().map_or(uri.path(), SshUrl::path).trim_end_matches('/');
        let parts: Vec<&str> = path.trim_end_matches(".git").split('/').filter(|part| !part.is_empty()).collect();
        let (name, above) = parts.split_last().ok_or_else(|| refuse("it names no repository"))?;
        let owners = match forge {
            ForgeKind::GitLab => above.len(),
            ForgeKind::GitHub | ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud | ForgeKind::Gitea => 1,
        };
        let (context, owner) = above.split_at_checked(above.len().saturating_sub(owners)).unwrap_or_default();
        let is_scm = |part: &&&str| forge == ForgeKind::BitbucketServer && **part == "scm";
        let context: Vec<&str> = context.iter().filter(|part| !is_scm(part)).copied().collect();
        if owner.is_empty() || parts.iter().any(|part| [".", ".."].contains(part)) {
            return Err(refuse("it names no owner and repository: https://HOST/OWNER/NAME"));
        }
        if forge == ForgeKind::GitHub && !context.is_empty() {
            return Err(refuse("GitHub has repositories of the form https://HOST/OWNER/NAME only"));
        }
        let is_cloud = scheme == "https" && authority.as_str().eq_ignore_ascii_case("bitbucket.org");
        if forge == ForgeKind::BitbucketCloud && (!is_cloud || !context.is_empty()) {
            return Err(refuse(
                "Bitbucket Cloud has repositories of the form https://bitbucket.org/WORKSPACE/NAME only",
            ));
        }
        Ok(Self {
            origin: format!("{scheme}://{authority}"),
            host: authority.to_string(),
            context: context.iter().map(|part| format!("/{part}")).collect(),
            owner: owner.join("/"),
            name: (*name).to_owned(),
        })
    }

    /// The address of GitHub's API for what is on this host.
    pub(crate) fn api_root(&self) -> String {
        match self.host.to_ascii_lowercase().as_str() {
            "github.com" | "www.github.com" => "https://api.github.com".to_owned(),
            _ => format!("{}/api/v3", self.origin),
        }
    }

    /// The address of GitHub's GraphQL API (<https://docs.github.com/en/graphql>).
    pub(crate) fn graph(&self) -> String {
        match self.api_root().strip_suffix("/v3") {
            Some(root) => format!("{root}/graphql"),
            None => format!("{}/graphql", self.api_root()),
        }
    }

    /// Whether an address, without a slash at its end, is that of GitHub's API for what is on this host, or that of the host.
    pub(crate) fn has_api_at(&self, address: &str) -> bool {
        [&self.api_root(), &self.origin].iter().any(|known| known.eq_ignore_ascii_case(address))
    }

    /// The address of this repository in the forge's API.
    pub(crate) fn api(&self, forge: ForgeKind) -> String {
        let Self { origin, host: _, context, owner, name } = self;
        match forge {
            ForgeKind::GitHub => format!("{}/repos/{owner}/{name}", self.api_root()),
            ForgeKind::GitLab => format!("{origin}/api/v4/projects/{}", encoded(&format!("{owner}/{name}"))),
            ForgeKind::BitbucketServer => format!("{origin}{context}/rest/api/1.0/projects/{owner}/repos/{name}"),
            ForgeKind::BitbucketCloud => format!("https://api.bitbucket.org/2.0/repositories/{owner}/{name}"),
            ForgeKind::Gitea => format!("{origin}{context}/api/v1/repos/{owner}/{name}"),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}/{}/{}", self.host, self.context, self.owner, self.name)
    }
}

/// A text as a part of a path, or as a value of a query
/// ([RFC 3986, 2.3](https://www.rfc-editor.org/rfc/rfc3986#section-2.3)).
pub(crate) fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_found_in_the_api_of_its_forge() {
        for (forge, url, api) in [
            (ForgeKind::GitHub, "https://github.com/shop/web.git", "https://api.github.com/repos/shop/web"),
            (ForgeKind::GitHub, "https://ghe.example.com/shop/web/", "https://ghe.example.com/api/v3/repos/shop/web"),
            (
                ForgeKind::GitLab,
                "https://gl.example.com/a/b/web.git",
                "https://gl.example.com/api/v4/projects/a%2Fb%2Fweb",
            ),
            (
                ForgeKind::BitbucketServer,
                "https://bb.example.com:7990/scm/~ann/web.git",
                "https://bb.example.com:7990/rest/api/1.0/projects/~ann/repos/web",
            ),
            (
                ForgeKind::BitbucketServer,
                "https://example.com/bitbucket/scm/PRJ/web.git",
                "https://example.com/bitbucket/rest/api/1.0/projects/PRJ/repos/web",
            ),
            (
                ForgeKind::BitbucketCloud,
                "https://bitbucket.org/shop/web.git",
                "https://api.bitbucket.org/2.0/repositories/shop/web",
            ),
            (ForgeKind::GitHub, "ssh://git@github.com/shop/web.git", "https://api.github.com/repos/shop/web"),
            (ForgeKind::GitHub, "ssh://git@ssh.github.com:443/shop/web", "https://api.github.com/repos/shop/web"),
            (
                ForgeKind::GitLab,
                "ssh://git@gl.example.com:2222/a/b/web.git",
                "https://gl.example.com/api/v4/projects/a%2Fb%2Fweb",
            ),
            (
                ForgeKind::BitbucketServer,
                "ssh://git@bb.example.com:7999/~ann/web.git",
                "https://bb.example.com/rest/api/1.0/projects/~ann/repos/web",
            ),
            (
                ForgeKind::BitbucketCloud,
                "ssh://git@bitbucket.org/shop/web.git",
                "https://api.bitbucket.org/2.0/repositories/shop/web",
            ),
            (ForgeKind::Gitea, "https://example.com/git/shop/web", "https://example.com/git/api/v1/repos/shop/web"),
        ] {
            assert_eq!(Place::of(forge, url).map(|place| place.api(forge)), Ok(api.to_owned()));
        }
    }

    #[test]
    fn what_is_no_repository_is_refused_without_its_secrets() {
        for url in [
            "",
            "shop/web",
            "ssh://git:hunter2@github.com/shop/web",
            "ssh://-oProxyCommand=hunter2/shop/web",
            "https://github.com/web",
            "https://github.com",
            "https://u:hunter2@github.com/shop/web",
            "https://github.com/shop/web?token=hunter2",
            "https://github.com/a/b/c",
            "https://github.com/shop/..",
        ] {
            let refused = Place::of(ForgeKind::GitHub, url).expect_err(url).to_string();
            assert!(!refused.contains("hunter2"), "{refused}");
        }
        // Its API is at one place, so a token for another host would go to the wrong one.
        for url in [
            "https://bitbucket.example.com/shop/web",
            "http://bitbucket.org/shop/web",
            "https://bitbucket.org:8443/shop/web",
            "https://bitbucket.org/scm/shop/web",
        ] {
            let refused = Place::of(ForgeKind::BitbucketCloud, url).expect_err(url).to_string();
            assert!(refused.contains("https://bitbucket.org/WORKSPACE/NAME"), "{refused}");
        }
    }
}
