//! Two accounts, each with a role of its own, with the real SDK against a stand-in of STS and CloudFront.

use std::process::Command;

use allclear::adapters::cloudfront::Role;
use allclear::adapters::cloudfront::accounts::{Accounts, cure};
use kernel::names::account::AccountName;
use sandbox::cloudfront::accounts::{self as roles, AccountsStandIn};

use super::*;

const SHOP: &str = "arn:aws:iam::111111111111:role/allclear";
const BLOG: &str = "arn:aws:iam::222222222222:role/allclear";

struct Several {
    shop: Arc<CloudFrontStandIn>,
    blog: Arc<CloudFrontStandIn>,
    aws: Arc<AccountsStandIn>,
    server: Server,
    accounts: Accounts,
}

impl Several {
    /// `EOWN` of our own credentials, `ESHOP` of a role with an external id, and `EBLOG` of one without.
    async fn start() -> Self {
        let account = |id: &str| {
            let account = Arc::new(CloudFrontStandIn::new(stand_in::Options::default()));
            account.add_distribution(stand_in::Distribution::new(id).alias("www.example.com"));
            account
        };
        let (own, shop, blog) = (account("EOWN"), account("ESHOP"), account("EBLOG"));
        let aws = Arc::new(AccountsStandIn::new(own));
        let role = |arn: &str, external_id: Option<&str>| roles::Role {
            arn: arn.to_owned(),
            external_id: external_id.map(str::to_owned),
        };
        aws.add(role(SHOP, Some("our-id")), shop.clone());
        aws.add(role(BLOG, None), blog.clone());
        let server = Server::start(aws.clone()).await.expect("loopback");
        let accounts = Self::accounts(&server, "our-id").await;
        Self { shop, blog, aws, server, accounts }
    }

    async fn accounts(server: &Server, external_id: &str) -> Accounts {
        let own = Options {
            endpoint_url: Some(server.url()),
            region: Some("us-east-1".to_owned()),
            credentials: Some(StaticCredentials {
                access_key_id: "AKIDOWN".to_owned(),
                secret_access_key: SECRET.to_owned(),
            }),
            ..Options::default()
        };
        let role = |arn: &str, external_id: Option<&str>| Options {
            role: Some(Role { arn: arn.to_owned(), external_id: external_id.map(str::to_owned) }),
            ..own.clone()
        };
        let all = [("shop", role(SHOP, Some(external_id))), ("blog", role(BLOG, None)), ("default", own.clone())];
        Accounts::new(all.map(|(name, options)| (account_name(name), options))).await
    }

    fn of(&self, name: &str) -> Arc<dyn Cdn> {
        self.accounts.account(&account_name(name)).expect("the account")
    }
}

fn account_name(text: &str) -> AccountName {
    text.parse().expect("a name")
}

async fn ids(cdn: &dyn Cdn) -> Vec<String> {
    cdn.distributions().await.expect("listing").iter().map(|one| one.id.to_string()).collect()
}

#[tokio::test]
async fn each_account_is_asked_with_the_credentials_of_its_role() {
    let world = Several::start().await;
    for (name, expected) in [("shop", "ESHOP"), ("blog", "EBLOG"), ("default", "EOWN")] {
        assert_eq!(ids(world.of(name).as_ref()).await, [expected]);
    }
    assert_eq!(ids(&world.accounts).await, ["EBLOG", "EOWN", "ESHOP"]);
    world.of("shop").create(&id("ESHOP"), &reference("r1"), &paths(&["/*"])).await.expect("created");
    world.of("shop").create(&id("ESHOP"), &reference("r2"), &paths(&["/a"])).await.expect("created");
    assert_eq!((world.shop.invalidations().len(), world.blog.invalidations().len()), (2, 0));
    assert_eq!(world.aws.assumed(), 2, "each role once: credentials are kept while they are good");
    assert!(world.shop.invalidations().iter().all(|one| one.caller.starts_with("ASIASTANDIN")));
}

// Faults: F10
#[tokio::test]
async fn credentials_that_expire_in_the_middle_are_asked_for_anew_and_nothing_happens_twice() {
    let world = Several::start().await;
    let shop = world.of("shop");
    let first = shop.create(&id("ESHOP"), &reference("r1"), &paths(&["/*"])).await.expect("created");
    world.aws.expire_all();
    let (again, other) = (reference("r1"), reference("r2"));
    let all = paths(&["/*"]);
    let of = id("ESHOP");
    let (again, other) = tokio::join!(shop.create(&of, &again, &all), shop.create(&of, &other, &all));
    assert_eq!(again.expect("created").id, first.id);
    assert_ne!(other.expect("created").id, first.id);
    assert_eq!(world.shop.invalidations().len(), 2);
    assert!((2..=3).contains(&world.aws.assumed()), "{}", world.aws.assumed());
    // Asked anew once for a call, and no more.
    world.aws.last(Duration::ZERO);
    world.aws.expire_all();
    let before = world.server.seen().len();
    assert_eq!(class(shop.status(&of, &first.id).await), CdnErrorClass::Denied);
    assert!(world.server.seen().len() - before <= 5, "no loop");
    world.aws.last(Duration::from_secs(3_600));
    assert_eq!(shop.status(&of, &first.id).await, Ok(InvalidationStatus::InProgress));
}

// Faults: F10
#[tokio::test]
async fn a_refused_role_names_the_account_and_what_would_allow_it_and_stops_no_other() {
    let world = Several::start().await;
    let wrong = Several::accounts(&world.server, "wrong-id").await;
    let refused = wrong.account(&account_name("shop")).expect("shop").distributions().await.expect_err("refused");
    assert_eq!(refused.class.cause(Cause::ListDistributions, &refused.message), Some(Cause::Credentials));
    for words in
        ["AWS account shop: ", "the role cannot be assumed: AccessDenied", "\"sts:AssumeRole\"", SHOP, "trust policy"]
    {
        assert!(refused.message.contains(words), "{words}: {}", refused.message);
    }
    assert!(!refused.message.contains("wrong-id") && !refused.message.contains("our-id"), "{}", refused.message);
    assert_eq!(ids(wrong.account(&account_name("blog")).expect("blog").as_ref()).await, ["EBLOG"]);
}

// Faults: F10
#[tokio::test]
async fn sts_that_is_down_is_no_refusal() {
    let world = Several::start().await;
    world.aws.break_sts(true);
    let error = world.of("shop").distributions().await.expect_err("down");
    assert_eq!(
        (error.class, error.class.cause(Cause::ListDistributions, &error.message)),
        (CdnErrorClass::Ambiguous, None)
    );
    assert_eq!(ids(world.of("default").as_ref()).await, ["EOWN"], "it needs no role");
    world.aws.break_sts(false);
    assert_eq!(ids(world.of("shop").as_ref()).await, ["ESHOP"]);
}

#[tokio::test]
async fn a_missing_right_is_named_with_its_statement_in_the_right_account() {
    let world = Several::start().await;
    world.shop.deny(true);
    let create = async |name: &str, of: &str| {
        world.of(name).create(&id(of), &reference("r1"), &paths(&["/*"])).await.map(|_| ())
    };
    let error = create("shop", "ESHOP").await.expect_err("denied");
    assert_eq!(error.class.cause(Cause::CreateInvalidation, &error.message), Some(Cause::CreateInvalidation));
    let statement = "{\"Effect\": \"Allow\", \"Action\": \"cloudfront:CreateInvalidation\", \"Resource\": \
                     \"arn:aws:cloudfront::111111111111:distribution/ESHOP\"}";
    for words in ["AWS account shop: ", SHOP, statement] {
        assert!(error.message.contains(words), "{words}: {}", error.message);
    }
    assert_eq!(create("blog", "EBLOG").await, Ok(()));
}

#[test]
fn what_allows_a_call_is_by_the_word_of_aws_and_nothing_allows_what_is_denied_expressly() {
    let options = Options { role: Some(Role { arn: SHOP.to_owned(), external_id: None }), ..Options::default() };
    let of = id("ESHOP");
    let cured = |message: &str| cure(&options, message, Cause::GetInvalidation, Some(&of));
    let named =
        "AccessDenied (HTTP 403): User: x is not authorized to perform: cloudfront:GetDistribution on resource: y";
    for (message, words) in [
        (named, "cloudfront:GetDistribution\""),
        ("AccessDenied (HTTP 403): no", "cloudfront:GetInvalidation\""),
        ("AccessDeniedException (HTTP 403): no", "cloudfront:GetInvalidation\""),
        (
            "the role cannot be assumed: AccessDenied: User: x is not authorized to perform: sts:TagSession",
            "sts:TagSession\"",
        ),
        ("the role cannot be assumed: AccessDenied", "sts:AssumeRole\""),
    ] {
        assert!(cured(message).is_some_and(|cure| cure.contains(words)), "{words}: {:?}", cured(message));
    }
    assert_eq!(cured(&format!("{named} with an explicit deny in an identity-based policy")), None);
    assert_eq!(cured("ExpiredToken (HTTP 403)"), None, "a right would not help");
}

/// `shop` has no distribution tenant and no right to any.
#[tokio::test]
async fn a_distribution_tenant_is_listed_found_and_purged_in_its_account_and_named_with_it() {
    let world = Several::start().await;
    world.shop.deny_distribution_tenants(true);
    world.blog.add_distribution(stand_in::Distribution { tenant_only: true, ..stand_in::Distribution::new("ESHARED") });
    world.blog.add_distribution_tenant(stand_in::DistributionTenant::new("dt_blog", "ESHARED").domain("a.example.com"));
    let (tenant, of) = (id("dt_blog"), [id("ESHARED")].into());
    for cdn in [&world.accounts as &dyn Cdn, world.of("blog").as_ref()] {
        let listed = cdn.distribution_tenants(&of).await.expect("listing");
        assert_eq!(listed.iter().map(|one| &one.id).collect::<Vec<_>>(), [&tenant]);
        let found = cdn.distribution_tenant(&"a.example.com".parse().expect("a host")).await.expect("an answer");
        assert_eq!(found.map(|one| one.id), Some(tenant.clone()));
    }
    world.accounts.create(&tenant, &reference("r1"), &paths(&["/*"])).await.expect("created");
    assert_eq!((world.shop.invalidations().len(), world.blog.invalidations().len()), (0, 1));

    world.blog.deny_distribution_tenants(true);
    let blog = world.of("blog");
    let created = blog.create(&tenant, &reference("r2"), &paths(&["/*"])).await.expect_err("denied");
    let searched = blog.find(&tenant, &reference("r2")).await.expect_err("denied");
    let listed = blog.distribution_tenants(&of).await.expect_err("denied");
    let found = blog.distribution_tenant(&"a.example.com".parse().expect("a host")).await.expect_err("denied");
    let one = "arn:aws:cloudfront::222222222222:distribution-tenant/dt_blog";
    for (error, action, resource) in [
        (&created, "CreateInvalidationForDistributionTenant", one),
        (&searched, "ListInvalidationsForDistributionTenant", one),
        (&listed, "ListDistributionTenants", "*"),
        (&found, "GetDistributionTenantByDomain", "*"),
    ] {
        let statement =
            format!("{{\"Effect\": \"Allow\", \"Action\": \"cloudfront:{action}\", \"Resource\": \"{resource}\"}}");
        let message = &error.message;
        assert!(message.starts_with("AWS account blog: ") && message.contains(&statement), "{statement}: {message}");
        assert!(resource == "*" || message.contains("distribution tenant dt_blog"), "{message}");
    }
}

/// Another implementation of the protocol reads the stand-in in the same way.
#[tokio::test]
async fn botocore_assumes_a_role_of_the_stand_in() {
    let world = Several::start().await;
    let script = "import sys, time, botocore.session\n\
                  session = botocore.session.get_session()\n\
                  session.set_credentials('AKIDOWN', 'x')\n\
                  sts = session.create_client('sts', region_name='us-east-1', endpoint_url=sys.argv[1])\n\
                  got = sts.assume_role(RoleArn=sys.argv[2], RoleSessionName='check', ExternalId='our-id')['Credentials']\n\
                  session.set_credentials(got['AccessKeyId'], got['SecretAccessKey'], got['SessionToken'])\n\
                  cdn = session.create_client('cloudfront', region_name='us-east-1', endpoint_url=sys.argv[1])\n\
                  print([one['Id'] for one in cdn.list_distributions()['DistributionList']['Items']], 0 < got['Expiration'].timestamp() - time.time() <= 3600)\n\
                  try:\n    sts.assume_role(RoleArn=sys.argv[2], RoleSessionName='check', ExternalId='no')\n\
                  except sts.exceptions.ClientError as error:\n    print(error.response['Error']['Code'])\n";
    let url = world.server.url();
    let ran = tokio::task::spawn_blocking(move || {
        Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.venv/bin/python"))
            .args(["-c", script, &url, SHOP])
            .output()
            .expect("python of .venv")
    });
    let ran = ran.await.expect("it ends");
    let out = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(out, "['ESHOP'] True\nAccessDenied\n", "{}", String::from_utf8_lossy(&ran.stderr));
}
