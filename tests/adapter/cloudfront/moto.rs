//! Against moto: its XML and paging are not ours. Where it departs from the real service (status `COMPLETED` at once,
//! oldest first, no de-duplication; measured with 5.2.5) only what both agree on is asserted.

use support::moto::Moto;

use super::*;

#[tokio::test]
async fn listing_reads_every_page_of_another_implementation() {
    let moto = Moto::start();
    // Just above one page of 100.
    let mut expected = Vec::new();
    for number in 0..101 {
        expected.push(make_distribution(&moto, number).await);
    }
    let cdn = adapter(moto.url(), "AKIDONE", Timeouts::default()).await;
    let listed = cdn.distributions().await.expect("listing");
    assert_eq!(listed.iter().map(|each| each.id.as_str()).collect::<Vec<_>>(), expected);
    let last = listed.last().expect("101 of them");
    assert_eq!(last.aliases, ["www-100.example.com", "*.w-100.example.com"]);
    assert_eq!(last.origins, ["lb-100.example.net"]);
    assert!(last.domain_name.ends_with(".cloudfront.net"), "{}", last.domain_name);
    assert!(last.enabled && !last.staging && !last.tenant_only);
}

#[tokio::test]
async fn an_invalidation_is_created_followed_and_found() {
    let moto = Moto::start();
    let distribution = id(&make_distribution(&moto, 0).await);
    let cdn = adapter(moto.url(), "AKIDONE", Timeouts::default()).await;
    assert_eq!(cdn.find(&distribution, &reference("r1")).await.expect("search"), None);
    let created = cdn.create(&distribution, &reference("r1"), &paths(&["/*", "/a?b&c"])).await.expect("created");
    let other = cdn.create(&distribution, &reference("r2"), &paths(&["/b"])).await.expect("created");
    assert_ne!(created.id, other.id);
    let status = cdn.status(&distribution, &created.id).await.expect("status");
    assert_eq!(status, InvalidationStatus::Completed, "moto writes it in upper case");
    let found = cdn.find(&distribution, &reference("r1")).await.expect("search").expect("found");
    assert_eq!((found.invalidation, found.sent), (created.id, paths(&["/*", "/a?b&c"])));
    assert_eq!(cdn.find(&distribution, &reference("r3")).await.expect("search"), None);
}

#[tokio::test]
async fn what_does_not_exist_is_told_apart() {
    let moto = Moto::start();
    let distribution = id(&make_distribution(&moto, 0).await);
    let cdn = adapter(moto.url(), "AKIDONE", Timeouts::default()).await;
    let unknown = InvalidationId::from("IUNKNOWN");
    assert_eq!(class(cdn.status(&distribution, &unknown).await), CdnErrorClass::NoSuchInvalidation);
    assert_eq!(class(cdn.create(&id("EUNKNOWN"), &reference("r1"), &paths(&["/*"])).await), CdnErrorClass::Gone);
}

/// Creates a distribution by its wire format, which the adapter has no use for, and returns its id.
pub async fn make_distribution(moto: &Moto, number: usize) -> String {
    let config = format!(
        "<DistributionConfig xmlns=\"http://cloudfront.amazonaws.com/doc/2020-05-31/\">\
         <CallerReference>{number}</CallerReference><Comment>test</Comment><Enabled>true</Enabled>\
         <Aliases><Quantity>2</Quantity><Items><CNAME>www-{number}.example.com</CNAME>\
         <CNAME>*.w-{number}.example.com</CNAME></Items></Aliases>\
         <Origins><Quantity>1</Quantity><Items><Origin><Id>o</Id><DomainName>lb-{number}.example.net</DomainName>\
         <CustomOriginConfig><HTTPPort>80</HTTPPort><HTTPSPort>443</HTTPSPort>\
         <OriginProtocolPolicy>https-only</OriginProtocolPolicy></CustomOriginConfig></Origin></Items></Origins>\
         <DefaultCacheBehavior><TargetOriginId>o</TargetOriginId>\
         <ViewerProtocolPolicy>allow-all</ViewerProtocolPolicy></DefaultCacheBehavior></DistributionConfig>"
    );
    let answer = reqwest::Client::builder()
        .no_proxy()
        .build()
        .expect("client")
        .post(format!("{}/2020-05-31/distribution", moto.url()))
        // moto picks the service by the scope named here and checks nothing.
        .header("authorization", "AWS4-HMAC-SHA256 Credential=AKIDONE/20260101/us-east-1/cloudfront/aws4_request")
        .header("content-type", "application/xml")
        .body(config)
        .send()
        .await
        .expect("moto answers");
    let (status, body) = (answer.status(), answer.text().await.expect("text"));
    let id = body.split_once("<Id>").and_then(|(_, rest)| rest.split_once("</Id>"));
    id.unwrap_or_else(|| panic!("{status}: {body}")).0.to_owned()
}
