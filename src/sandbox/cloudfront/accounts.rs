//! Several AWS accounts at one address, and the STS that lets one into the others: a stand-in for AssumeRole of the query protocol
//! (<https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html>), and one CloudFront for each account.
//!
//! The access key that signed a request says which account is meant, as at AWS. What it cannot prove: that a signature is right; nobody
//! checks it here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use actix_web::web;

use super::{CloudFrontStandIn, access_key_id, wire, xml};
use crate::http::{Reply, Request, StandIn};

/// The session of a role lasts so long, where the test sets nothing else: the default of AssumeRole.
const SESSION: Duration = Duration::from_secs(3_600);

/// A role that may be assumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    pub arn: String,
    /// What its trust policy wants to hear.
    pub external_id: Option<String>,
}

/// The accounts. Give it to [`crate::http::Server::start`] and keep an `Arc` of it for steering and assertions.
#[derive(Debug)]
pub struct AccountsStandIn {
    /// The account of every key that no role has given out.
    own: Arc<CloudFrontStandIn>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    roles: BTreeMap<String, (Role, Arc<CloudFrontStandIn>)>,
    /// The keys that were given out, each with its role, and when it ends.
    sessions: BTreeMap<String, (String, Instant)>,
    lasts: Duration,
    refused: bool,
    down: bool,
    assumed: u64,
}

impl AccountsStandIn {
    /// One account, of whoever asks.
    pub fn new(own: Arc<CloudFrontStandIn>) -> Self {
        let (roles, sessions) = (BTreeMap::new(), BTreeMap::new());
        let state = State { roles, sessions, lasts: SESSION, refused: false, down: false, assumed: 0 };
        Self { own, state: Mutex::new(state) }
    }

    /// Another account, which this role leads into.
    pub fn add(&self, role: Role, account: Arc<CloudFrontStandIn>) {
        self.lock().roles.insert(role.arn.clone(), (role, account));
    }

    /// Sessions that are given out from now on are said to last so long.
    pub fn last(&self, lasts: Duration) {
        self.lock().lasts = lasts;
    }

    /// The sessions of now count as expired, whatever was said of them.
    pub fn expire_all(&self) {
        let now = Instant::now();
        self.lock().sessions.values_mut().for_each(|(_, ends)| *ends = now);
    }

    /// Roles may not be assumed, or may be again.
    pub fn refuse(&self, refused: bool) {
        self.lock().refused = refused;
    }

    /// STS answers nothing but 503, or works again.
    pub fn break_sts(&self, down: bool) {
        self.lock().down = down;
    }

    /// How often a role was assumed.
    pub fn assumed(&self) -> u64 {
        self.lock().assumed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn assume(&mut self, form: &BTreeMap<String, String>) -> Reply {
        let asked = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
        let arn = asked("RoleArn");
        if self.down {
            return sts_error(503, "ServiceUnavailable", "the stand-in is down");
        }
        let known = self.roles.get(arn).filter(|(role, _)| match &role.external_id {
            Some(wanted) => asked("ExternalId") == wanted,
            None => true,
        });
        if self.refused || known.is_none() || asked("RoleSessionName").is_empty() {
            let message = format!(
                "User: arn:aws:iam::123456789012:user/allclear is not authorized to perform: sts:AssumeRole on resource: {arn}"
            );
            return sts_error(403, "AccessDenied", &message);
        }
        self.assumed += 1;
        let key = format!("ASIASTANDIN{}", self.assumed);
        self.sessions.insert(key.clone(), (arn.to_owned(), Instant::now() + self.lasts));
        let ends = jiff::Timestamp::try_from(SystemTime::now() + self.lasts).unwrap_or(jiff::Timestamp::MAX);
        let credentials = [
            xml::text("AccessKeyId", &key),
            xml::text("SecretAccessKey", "stand-in"),
            xml::text("SessionToken", "stand-in"),
            xml::text("Expiration", &format!("{ends:.0}")),
        ];
        let user = [xml::text("AssumedRoleId", "AROASTANDIN:allclear"), xml::text("Arn", &format!("{arn}/allclear"))];
        let result =
            [xml::element("Credentials", &credentials.concat()), xml::element("AssumedRoleUser", &user.concat())];
        let content = xml::element("AssumeRoleResult", &result.concat());
        Reply::full(
            200,
            "text/xml",
            format!(
                "<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">{content}</AssumeRoleResponse>"
            ),
        )
    }

    /// The account that a key is of.
    fn account(&self, key: &str, own: &Arc<CloudFrontStandIn>) -> Result<Arc<CloudFrontStandIn>, Reply> {
        if !key.starts_with("ASIASTANDIN") {
            return Ok(own.clone());
        }
        let session = self.sessions.get(key).filter(|(_, ends)| Instant::now() < *ends);
        let account = session.and_then(|(arn, _)| self.roles.get(arn)).map(|(_, account)| account.clone());
        account.ok_or_else(|| wire::error(403, "ExpiredToken", "The security token included in the request is expired"))
    }
}

impl StandIn for AccountsStandIn {
    fn answer(&self, request: &Request) -> Reply {
        let mut state = self.lock();
        let is_sts = request.method == "POST" && request.segments().is_empty();
        let form = if is_sts { form(&request.body) } else { BTreeMap::new() };
        if form.get("Action").is_some_and(|action| action == "AssumeRole") {
            return state.assume(&form);
        }
        match state.account(access_key_id(request), &self.own) {
            Ok(account) => {
                drop(state);
                account.answer(request)
            }
            Err(refusal) => refusal,
        }
    }
}

/// The fields of a form, which are written as those of a query.
fn form(body: &[u8]) -> BTreeMap<String, String> {
    let fields = std::str::from_utf8(body).ok().map(web::Query::<Vec<(String, String)>>::from_query);
    fields.and_then(Result::ok).map(|fields| fields.into_inner().into_iter().collect()).unwrap_or_default()
}

fn sts_error(status: u16, code: &str, message: &str) -> Reply {
    let error = [xml::text("Type", "Sender"), xml::text("Code", code), xml::text("Message", message)].concat();
    let content = format!("{}{}", xml::element("Error", &error), xml::text("RequestId", "0"));
    Reply::full(
        status,
        "text/xml",
        format!("<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">{content}</ErrorResponse>"),
    )
}
