//! A git host and its forge under one address, as people know them.

use std::sync::Arc;

use super::super::git::GitHost;
use super::super::http::{Reply, Request, StandIn};
use super::ForgeHost;

/// Git at `/shop/web.git`, on Bitbucket Server at `/scm/shop/web.git`; the API where that kind of forge has it.
#[derive(Debug)]
pub struct Site {
    pub git: Arc<GitHost>,
    pub forge: Arc<ForgeHost>,
}

impl StandIn for Site {
    fn answer(&self, request: &Request) -> Reply {
        if ["/api/", "/rest/", "/2.0/"].iter().any(|api| request.path.starts_with(api)) {
            return self.forge.answer(request);
        }
        let path = request.path.strip_prefix("/scm").unwrap_or(&request.path).to_owned();
        self.git.answer(&Request { path, ..request.clone() })
    }
}
