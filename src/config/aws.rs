//! `aws.*` and `cloudfront.*`: where CloudFront is, the AWS accounts beside the one of our own credentials, and what each is asked for.
//!
//! Not for credentials: those are the AWS default chain's, which this program does not repeat.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use config::{Map, Value, ValueKind};

use super::address::{Refused, WebUrl};
use super::suggest::{listed, nearest};
use super::tenants::{distribution, host, namespaces, texts};
use super::values::{LABEL_CHARS_MAX, Values};
use kernel::mask::shown;
use kernel::names::account::AccountName;
use purge::purges::accounts::{Accounts, Scope};

const KEY: &str = "aws.account";

/// Accounts at most: each is listed for itself, at least every ten minutes.
const ACCOUNTS_MAX: usize = 20;

/// Characters of the ARN of a role at most, by the API reference of AssumeRole.
const ARN_CHARS_MAX: usize = 2_048;

/// Characters of an external id at most, by the same.
const EXTERNAL_ID_CHARS_MAX: usize = 1_224;

const NAMES: [&str; 7] = ["name", "role_arn", "external_id", "region", "hosts", "namespaces", "distributions"];

type Problem = (Option<String>, Refused);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudFront {
    /// Instead of what the SDK finds (`AWS_ENDPOINT_URL_CLOUDFRONT`, `AWS_ENDPOINT_URL`, the partition's own).
    pub endpoint: Option<WebUrl>,
    /// Instead of what the SDK finds. CloudFront is global; this selects the partition and the signature's region.
    pub region: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aws {
    /// The account of our own credentials is one of them, beside others.
    pub own: bool,
    /// Those that are configured, by name. Empty: there is the one of our own credentials.
    pub accounts: BTreeMap<AccountName, Account>,
}

/// One `[[aws.account]]`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// The role that is assumed; `None` only where it is the account of our own credentials.
    pub role_arn: Option<String>,
    pub external_id: Option<String>,
    /// Instead of `cloudfront.region`.
    pub region: Option<String>,
    pub scope: Scope,
}

/// Without the external id: AWS does not take it for a secret, and it is in no log all the same.
impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { role_arn, external_id: _, region, scope } = self;
        let mut shown = f.debug_struct("Account");
        shown.field("role_arn", role_arn).field("region", region).field("scope", scope).finish_non_exhaustive()
    }
}

impl Aws {
    /// All accounts that are used, our own first if it is; empty where there is nothing to tell apart.
    pub fn used(&self) -> BTreeMap<AccountName, Account> {
        let mut used = self.accounts.clone();
        if self.own && !used.is_empty() {
            used.entry(AccountName::default()).or_default();
        }
        used
    }

    /// What each is asked for.
    pub fn scopes(&self) -> Accounts {
        Accounts::new(self.used().into_iter().map(|(name, account)| (name, account.scope)).collect())
    }
}

pub(super) fn cloudfront(values: &mut Values<'_>) -> Option<CloudFront> {
    let endpoint = values.optional("cloudfront.endpoint", "`http` or `https` URL", |text| {
        let url = WebUrl::parse(text)?;
        // The SDK would log them, and send a signature in their place.
        if url.expose().username().is_empty() && url.expose().password().is_none() {
            Ok(url)
        } else {
            let fix = "leave them out; requests are signed with AWS credentials";
            Err(Refused::new("has a user or a password, which CloudFront knows nothing of", fix))
        }
    });
    let region = values.optional("cloudfront.region", "AWS region", region);
    Some(CloudFront { endpoint: endpoint?, region: region? })
}

pub(super) fn accounts(values: &mut Values<'_>) -> Option<Aws> {
    let own = values.truth("aws.default");
    let accepts = format!("list of tables with {}", listed(NAMES));
    let tables = values.tables(KEY, &accepts, ACCOUNTS_MAX)?;
    let mut accounts = BTreeMap::new();
    let mut problems: Vec<(usize, Problem)> = Vec::new();
    for (index, table) in tables.iter().enumerate() {
        match account(table) {
            Ok((name, account)) => {
                problems.extend(clashes(&accounts, &account).into_iter().map(|refused| (index, (None, refused))));
                if accounts.insert(name.clone(), account).is_some() {
                    let refused = Refused::new(format!("{name} is there twice"), "give each account a name of its own");
                    problems.push((index, (None, refused)));
                }
            }
            Err(found) => problems.extend(found.into_iter().map(|problem| (index, problem))),
        }
    }
    let own = own?;
    if !own && problems.is_empty() {
        match (accounts.len(), accounts.contains_key(&AccountName::default())) {
            (0, _) => {
                let refused = Refused::new("leaves no account", "leave it true, or add an [[aws.account]]");
                return values.refuse("aws.default", Some("false".to_owned()), refused);
            }
            (_, true) => {
                let fix = "leave the entry default out, or set aws.default to true";
                problems.push((0, (None, Refused::new("default is switched off by aws.default", fix))));
            }
            (_, false) => {}
        }
    }
    for (index, (value, Refused { message, fix })) in problems.iter().map(|(index, problem)| (index, problem.clone())) {
        let message = format!("entry {}: {message}", index + 1);
        let _: Option<()> = values.refuse(KEY, value, Refused { message, fix });
    }
    problems.is_empty().then_some(Aws { own, accounts })
}

fn account(table: &Map<String, Value>) -> Result<(AccountName, Account), Vec<Problem>> {
    let mut problems = Vec::new();
    let mut name = None;
    let mut account = Account::default();
    let Scope { hosts, namespaces: spaces, distributions } = &mut account.scope;
    for (key, value) in table {
        let read = match key.as_str() {
            "name" => text(key, value, is_name).map(|read| name = Some(read)),
            "role_arn" => text(key, value, role).map(|read| account.role_arn = Some(read)),
            "external_id" => text(key, value, external_id).map(|read| account.external_id = Some(read)),
            "region" => text(key, value, region).map(|read| account.region = Some(read)),
            "hosts" => texts(key, value, host).map(|read| *hosts = read.into_iter().flatten().collect()),
            "namespaces" => texts(key, value, namespaces).map(|read| *spaces = read),
            "distributions" => texts(key, value, distribution).map(|read| *distributions = read),
            _ => Err((None, unknown(key))),
        };
        problems.extend(read.err());
    }
    let given: BTreeSet<&str> = table.keys().filter_map(|key| nearest(key, NAMES)).collect();
    if !given.contains("name") {
        problems.push((None, Refused::new("has no name", "add name = \"shop\"")));
    }
    let is_own = name.as_ref().is_some_and(AccountName::is_default);
    if !given.contains("role_arn") && !is_own {
        let fix = "add role_arn = \"arn:aws:iam::123456789012:role/allclear\", a role that our credentials may assume";
        problems.push((None, Refused::new("names no role", fix)));
    }
    if is_own && (given.contains("role_arn") || given.contains("external_id")) {
        let fix = "give it another name; default is the account of our own credentials";
        problems.push((None, Refused::new("default assumes a role", fix)));
    }
    name.filter(|_| problems.is_empty()).map(|name| (name, account)).ok_or(problems)
}

/// What an account has that one of these has too, and only one may have.
fn clashes(others: &BTreeMap<AccountName, Account>, account: &Account) -> Vec<Refused> {
    let number = |of: &Account| of.role_arn.as_deref().and_then(|arn| arn.split(':').nth(4)).map(str::to_owned);
    let own = number(account);
    let mut clashes = Vec::new();
    for (name, other) in others {
        if own.is_some() && number(other) == own {
            // Each entry has a pace of its own, and CloudFront's quota is that of the account.
            clashes
                .push(Refused::new(format!("is in the AWS account of {name}"), "write one entry for each AWS account"));
        }
        for id in account.scope.distributions.intersection(&other.scope.distributions) {
            let fix = "leave it to the account that has it";
            clashes.push(Refused::new(format!("{id} is among the distributions of {name} too"), fix));
        }
    }
    clashes
}

fn text<T>(name: &str, value: &Value, parse: impl Fn(&str) -> Result<T, Refused>) -> Result<T, Problem> {
    let ValueKind::String(text) = &value.kind else {
        return Err((None, Refused::new(format!("{name} is not a text"), format!("write {name} = \"…\""))));
    };
    parse(text.trim()).map_err(|refused| (Some(shown(text)), refused))
}

fn is_name(text: &str) -> Result<AccountName, Refused> {
    AccountName::parse(text).map_err(|_| {
        Refused::new("name is not the name of an account", "write small letters, digits and hyphens, such as shop")
    })
}

/// `arn:PARTITION:iam::TWELVE DIGITS:role/PATH`.
fn role(text: &str) -> Result<String, Refused> {
    let parts: Vec<&str> = text.splitn(6, ':').collect();
    let is_role = match parts.as_slice() {
        ["arn", partition, "iam", "", number, role] => {
            let is_number = number.len() == 12 && number.bytes().all(|byte| byte.is_ascii_digit());
            partition.starts_with("aws") && is_number && role.strip_prefix("role/").is_some_and(|name| !name.is_empty())
        }
        _ => false,
    };
    let is_plain = text.len() <= ARN_CHARS_MAX && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_role && is_plain {
        return Ok(text.to_owned());
    }
    Err(Refused::new("role_arn is not the ARN of a role", "write arn:aws:iam::123456789012:role/allclear"))
}

fn external_id(text: &str) -> Result<String, Refused> {
    let is_of_one = |c: char| c.is_ascii_alphanumeric() || "_+=,.@:/-".contains(c);
    if (2..=EXTERNAL_ID_CHARS_MAX).contains(&text.len()) && text.chars().all(is_of_one) {
        return Ok(text.to_owned());
    }
    let fix = format!("write 2 to {EXTERNAL_ID_CHARS_MAX} letters, digits and any of _+=,.@:/-");
    Err(Refused::new("external_id is none that AWS takes", fix))
}

fn region(text: &str) -> Result<String, Refused> {
    let is_region = text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if is_region && !text.is_empty() && text.len() <= LABEL_CHARS_MAX {
        Ok(text.to_owned())
    } else {
        Err(Refused::new("is not a region", "write a region such as us-east-1"))
    }
}

fn unknown(name: &str) -> Refused {
    let fix = match nearest(name, NAMES) {
        Some(known) => format!("did you mean {known}?"),
        None => format!("remove it, or use {}", listed(NAMES)),
    };
    Refused::new(format!("{} is not a key", shown(name)), fix)
}
