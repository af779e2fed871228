//! GitHub as a GitHub App meets it: it judges proofs by its own clock, and gives tokens for them.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use sandbox::http::{Reply, Request};
use serde_json::{Value, json};

use crate::heads::EPOCH_MS;

const ID: &str = "4711";
const INSTALLATION: &str = "815";

/// One App with one installation, which has the repository `web`.
pub struct Installed {
    pair: KeyPair,
    token: String,
    now: AtomicI64,
    asked: Mutex<Vec<Value>>,
}

impl Installed {
    /// It gives this token to those with the App's key.
    pub fn new(token: &str) -> Arc<Self> {
        let pair = KeyPair::generate(KeySize::Rsa2048).expect("a key");
        let now = AtomicI64::new(EPOCH_MS / 1000);
        Arc::new(Self { pair, token: token.to_owned(), now, asked: Mutex::default() })
    }

    /// Its private key in PKCS#8.
    pub fn pem(&self) -> String {
        let der: aws_lc_rs::encoding::Pkcs8V1Der<'_> = self.pair.as_der().expect("its form");
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der.as_ref()))
    }

    /// What a Secret holds for it.
    pub fn secret(&self) -> Vec<(&'static str, String)> {
        let pem = self.pem();
        vec![
            ("githubAppID", ID.to_owned()),
            ("githubAppInstallationID", format!("{INSTALLATION}\n")),
            ("githubAppPrivateKey", pem),
        ]
    }

    /// GitHub's clock goes on by this many seconds.
    pub fn forward(&self, seconds: i64) {
        self.now.fetch_add(seconds, Ordering::SeqCst);
    }

    /// What tokens were given for.
    pub fn given(&self) -> Vec<Value> {
        self.asked.lock().expect("lock").clone()
    }

    pub fn answer(&self, request: &Request) -> Reply {
        let refuse = |status, why: &str| said(status, &json!({ "message": why }));
        let is_search = request.path == "/api/v3/repos/shop/web/installation";
        if !is_search && request.path != format!("/api/v3/app/installations/{INSTALLATION}/access_tokens") {
            return refuse(404, "Not Found");
        }
        let proof = request.header("authorization").and_then(|proof| proof.strip_prefix("Bearer "));
        let now = self.now.load(Ordering::SeqCst);
        if let Err(why) = self.judge(proof.unwrap_or_default(), now) {
            return refuse(401, why);
        }
        if is_search {
            return said(200, &json!({"id": 815, "account": {"login": "shop"}}));
        }
        let document: Value = serde_json::from_slice(&request.body).expect("JSON");
        if document.get("repositories") != Some(&json!(["web"])) {
            return refuse(422, "There is at least one repository that does not exist or is not accessible");
        }
        self.asked.lock().expect("lock").push(document);
        let ends = jiff::Timestamp::from_second(now + 3600).expect("a time").to_string();
        said(201, &json!({"token": self.token, "expires_at": ends, "repository_selection": "selected"}))
    }

    fn judge(&self, proof: &str, now: i64) -> Result<(), &'static str> {
        let no_proof = "A JSON web token could not be decoded";
        let (said, signature) = proof.rsplit_once('.').ok_or(no_proof)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| no_proof)?;
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, self.pair.public_key().as_ref());
        public.verify(said.as_bytes(), &signature).map_err(|_| no_proof)?;
        let [head, claims] = [said.split('.').next(), said.split('.').nth(1)].map(|part| {
            let part = URL_SAFE_NO_PAD.decode(part.expect("two parts")).expect("base64");
            serde_json::from_slice::<Value>(&part).expect("JSON")
        });
        assert_eq!((&head["alg"], &claims["iss"]), (&json!("RS256"), &json!(ID)));
        match (claims["iat"].as_i64().expect("a second"), claims["exp"].as_i64().expect("a second")) {
            (begins, _) if begins > now => Err("'Issued at' claim ('iat') must be an Integer representing the time"),
            (_, ends) if ends <= now => Err("'Expiration time' claim ('exp') must be a time in the future"),
            (_, ends) if ends > now + 600 => Err("'Expiration time' claim ('exp') is too far in the future"),
            _ => Ok(()),
        }
    }
}

fn said(status: u16, document: &Value) -> Reply {
    Reply::full(status, "application/json", document.to_string())
}
