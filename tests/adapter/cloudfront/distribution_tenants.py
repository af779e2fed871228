"""botocore against a stand-in of CloudFront: `distribution_tenants.py URL`. It reads the service's model from other hands than the SDK that
allclear is built with. Prints what each operation of distribution tenants answered, as JSON."""

import json
import sys

import botocore.config
import botocore.exceptions
import botocore.session

cloudfront = botocore.session.Session().create_client(
    "cloudfront",
    region_name="us-east-1",
    endpoint_url=sys.argv[1],
    aws_access_key_id="AKIDBOTO",
    aws_secret_access_key="secret",
    config=botocore.config.Config(proxies={}, retries={"total_max_attempts": 1}),
)


def refused(call, **arguments):
    try:
        return call(**arguments)
    except botocore.exceptions.ClientError as error:
        return error.response["Error"]["Code"]


first = cloudfront.list_distribution_tenants(MaxItems=1)
second = cloudfront.list_distribution_tenants(MaxItems=1, Marker=first["NextMarker"])
of_other = cloudfront.list_distribution_tenants(AssociationFilter={"DistributionId": "E9"})
found = cloudfront.get_distribution_tenant_by_domain(Domain="a.example.com")
batch = {"Paths": {"Quantity": 2, "Items": ["/a", "/*"]}, "CallerReference": "r1"}
made = cloudfront.create_invalidation_for_distribution_tenant(Id="dt_a", InvalidationBatch=batch)
again = cloudfront.create_invalidation_for_distribution_tenant(Id="dt_a", InvalidationBatch=batch)
invalidation = made["Invalidation"]["Id"]
got = cloudfront.get_invalidation_for_distribution_tenant(DistributionTenantId="dt_a", Id=invalidation)
listed = cloudfront.list_invalidations_for_distribution_tenant(Id="dt_a", MaxItems=20)["InvalidationList"]
print(
    json.dumps(
        {
            "listed": [one["Id"] for page in (first, second) for one in page["DistributionTenantList"]],
            "ends": "NextMarker" not in second,
            "of_other": of_other.get("DistributionTenantList", []),
            "distribution": first["DistributionTenantList"][0]["DistributionId"],
            "found": [found["DistributionTenant"]["Id"], found["DistributionTenant"]["Enabled"]],
            "domains": found["DistributionTenant"]["Domains"],
            "location": made["Location"],
            "status": made["Invalidation"]["Status"],
            "same": again["Invalidation"]["Id"] == invalidation,
            "sent": got["Invalidation"]["InvalidationBatch"],
            "invalidations": [one["Id"] == invalidation for one in listed["Items"]],
            "none": [
                refused(cloudfront.get_distribution_tenant_by_domain, Domain="none.example.com"),
                refused(cloudfront.create_invalidation_for_distribution_tenant, Id="dt_z", InvalidationBatch=batch),
                refused(cloudfront.list_invalidations_for_distribution_tenant, Id="dt_z"),
                refused(cloudfront.get_invalidation_for_distribution_tenant, DistributionTenantId="dt_z", Id="I0"),
                refused(cloudfront.get_invalidation_for_distribution_tenant, DistributionTenantId="dt_a", Id="I0"),
                refused(cloudfront.create_invalidation, DistributionId="dt_a", InvalidationBatch=batch),
            ],
        }
    )
)
