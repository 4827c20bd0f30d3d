// Tokens and settings.
import { createHmac, sign as cryptoSign } from 'node:crypto'

/** @import { KeyObject } from 'node:crypto' */

/** Unix s. */
export const NOW = 1_800_000_000

/** @param {unknown} value JSON, or its text */
export const encode = value =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

/** @param {unknown} payload JSON, or its text @param {string | KeyObject} key @param {Record<string, any>} [header] */
export function makeToken(payload, key, header = {}) {
  const all = { alg: 'HS256', typ: 'JWT', ...header }
  const input = `${encode(all)}.${encode(payload)}`
  const hash = `sha${all.alg.slice(2)}`
  let signature
  if (all.alg.startsWith('HS')) signature = createHmac(hash, key).update(input).digest()
  else if (all.alg === 'EdDSA') signature = cryptoSign(null, Buffer.from(input), key)
  else
    signature = cryptoSign(hash, Buffer.from(input), {
      key: /** @type {any} */ (key),
      dsaEncoding: 'ieee-p1363',
    })
  return `${input}.${signature.toString('base64url')}`
}

const block = {
  hmac_secret_key: '',
  hmac_previous_secret_key: '',
  hmac_previous_secret_key_valid_until: 0,
  rsa_public_key: '',
  ecdsa_public_key: '',
  jwks_public_endpoint: '',
  audience: '',
  audience_regex: '',
  issuer: '',
  issuer_regex: '',
  user_id_claim: '',
  insecure_skip_jwks_endpoint_safety_check: false,
}

/** @param {Partial<typeof block>} token @param {object} [client] @param {object} [subscription] */
export const makeConfig = (token, client = {}, subscription = {}) => ({
  client: {
    token: { ...block, ...token },
    subscription_token: { enabled: false, ...block, ...subscription },
    insecure: false,
    insecure_skip_token_signature_verify: false,
    ...client,
  },
})

/** @param {() => any} call @returns {any} its error, or undefined */
export function thrown(call) {
  try {
    call()
  } catch (error) {
    return error
  }
}

/** @param {number} tag @param {...(Buffer | number[])} parts */
function der(tag, ...parts) {
  const body = Buffer.concat(parts.map(part => Buffer.from(part)))
  const size = body.length
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 255]
  return Buffer.concat([Buffer.from([tag, ...length]), body])
}

/** A minimal self-signed certificate (RFC 5280). @param {{publicKey: KeyObject, privateKey: KeyObject}} keys RSA */
export function makeCertificate({ publicKey, privateKey }) {
  // sha256WithRSAEncryption, NULL
  const algorithm = der(0x30, [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 1, 1, 11, 5, 0])
  const commonName = der(0x30, [6, 3, 0x55, 4, 3], der(0x0c, Buffer.from('test')))
  const name = der(0x30, der(0x31, commonName))
  const dates = ['260101000000Z', '460101000000Z'].map(date => der(0x17, Buffer.from(date)))
  const body = der(
    0x30,
    [2, 1, 1],
    algorithm,
    name,
    der(0x30, ...dates),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
  )
  const signature = der(3, [0], cryptoSign('sha256', body, privateKey))
  const base64 = der(0x30, body, algorithm, signature).toString('base64')
  return `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`
}
