//! What nobody else may guess: the verifier of PKCE and the state of a login.
//!
//! AUC-05, AUC-10.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::client::{HttpError, Secret};

/// 256 random bits as text.
pub(super) fn random() -> Result<Secret, HttpError> {
    let mut bytes = [0; 32];
    let filled = getrandom::fill(&mut bytes);
    filled.map_err(|error| HttpError::Login { why: format!("no random numbers: {error}") })?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
}

/// The challenge that belongs to a verifier: S256.
pub(super) fn challenge(verifier: &Secret) -> String {
    URL_SAFE_NO_PAD.encode(hmac_sha256::Hash::hash(verifier.reveal().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AUC-05; the example of RFC 7636, appendix B.
    #[test]
    fn auc_05_the_challenge_is_the_hash_of_the_verifier() {
        let verifier = Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(challenge(&verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        let (one, two) = (random().unwrap(), random().unwrap());
        assert!(one.reveal().len() >= 43 && one != two);
        assert_eq!(format!("{one:?}"), "***");
    }
}
