// EC2 errors as one line of text with advice.

import { ProviderError } from '../contract.js'

/** A failed call to EC2; the message is one line. */
export class Ec2Error extends ProviderError {
  /**
   * @param {string} message one line @param {string} code of EC2 or Node.js; synonyms have one code
   * @param {string} region '': not specific to a region
   */
  constructor(message, code, region) {
    super(message)
    this.code = code
    this.region = region
  }
}

/** Error codes of throttling; the SDK has retried already. */
export const THROTTLED = Object.freeze(
  new Set([
    'RequestLimitExceeded',
    'Throttling',
    'ThrottlingException',
    'RequestThrottled',
    'TooManyRequestsException',
  ]),
)

const POLICY_DOCS = 'docs/fleet-ec2.md has the required policy'

/** @typedef {(said: string, action: string) => string} Message `said`: EC2's own text; `action`: the call */

/** By code. @type {Record<string, Message>} */
const MESSAGES = {
  CredentialsProviderError: said =>
    `no AWS credentials (${said}): set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or run "aws configure"`,
  ExpiredToken: () => 'the AWS credentials have expired: get new ones and try again',
  NotAccepted: said => `the AWS credentials were not accepted (${said})`,
  UnauthorizedOperation: (_, action) => `the AWS credentials do not allow ec2:${action}; ${POLICY_DOCS}`,
  OptInRequired: said => `this account has not opted in to the region (${said})`,
  RequestTimeTooSkewed: () => "this machine's clock is wrong: EC2 refuses signatures with a wrong time",
  InsufficientInstanceCapacity: () =>
    'EC2 has no free instances of this type here (InsufficientInstanceCapacity): try another type or region',
  UnfulfillableCapacity: () =>
    'EC2 has no free spot instances of this type here (UnfulfillableCapacity): try on-demand, or another type or region',
  VcpuLimitExceeded: () =>
    'the vCPU quota of this account is too low here (VcpuLimitExceeded): raise it under Service Quotas, or use more regions',
  InstanceLimitExceeded: () =>
    'the instance quota of this account is too low here (InstanceLimitExceeded): raise it under Service Quotas, or use more regions',
  MaxSpotInstanceCountExceeded: () =>
    'the spot quota of this account is too low here (MaxSpotInstanceCountExceeded): raise it under Service Quotas, or omit --spot',
  SpotMaxPriceTooLow: said => `--max-price is below the spot price here (${said})`,
  RequestLimitExceeded: () =>
    'too many EC2 requests by this account (RequestLimitExceeded): try again in a minute',
  'InvalidKeyPair.NotFound': said => `--key-name: ${said}`,
  'InvalidAMIID.NotFound': said => `--image: ${said}`,
  'InvalidAMIID.Malformed': said => `--image: ${said}`,
  'InvalidSubnetID.NotFound': said => `--subnet: ${said}`,
  'InvalidSubnet.Range': said => `--subnet: ${said}`,
  InvalidInstanceType: said => `--instance-type: ${said}`,
  VPCIdNotSpecified: () => 'this region has no default VPC: pass a subnet (--subnet)',
  ENOTFOUND: said => `EC2 cannot be reached: ${said}`,
  TimeoutError: () => 'EC2 cannot be reached: no answer in time',
}

/** Codes that mean the same as one of MESSAGES. @type {Record<string, string>} */
const SYNONYMS = {
  RequestExpired: 'ExpiredToken',
  ExpiredTokenException: 'ExpiredToken',
  TokenRefreshRequired: 'ExpiredToken',
  AuthFailure: 'NotAccepted',
  InvalidClientTokenId: 'NotAccepted',
  UnrecognizedClientException: 'NotAccepted',
  SignatureDoesNotMatch: 'NotAccepted',
  IncompleteSignature: 'NotAccepted',
  AccessDenied: 'UnauthorizedOperation',
  AccessDeniedException: 'UnauthorizedOperation',
  InsufficientHostCapacity: 'InsufficientInstanceCapacity',
  SpotInstanceCountLimitExceeded: 'MaxSpotInstanceCountExceeded',
  DefaultVpcDoesNotExist: 'VPCIdNotSpecified',
  EAI_AGAIN: 'ENOTFOUND',
  ECONNREFUSED: 'ENOTFOUND',
  ECONNRESET: 'ENOTFOUND',
  EHOSTUNREACH: 'ENOTFOUND',
  ENETUNREACH: 'ENOTFOUND',
  EPIPE: 'ENOTFOUND',
  ETIMEDOUT: 'TimeoutError',
}

const MAX_LENGTH = 300

/** @param {unknown} message @returns {string} one line without a full stop */
function oneLine(message) {
  const text = String(message).replace(/\s+/g, ' ').trim().replace(/\.$/, '')
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}...` : text
}

/** @param {any} error of the SDK @param {string} region @param {string} action `RunInstances` @returns {Ec2Error} */
export function toEc2Error(error, region, action) {
  if (error instanceof Ec2Error) return error
  // A connection tried at several addresses fails with an AggregateError, whose own message is empty.
  const said = oneLine(error.message || error.errors?.[0]?.message || error.code || error.name)
  // The SDK has the code of a response in `Code` or `name`; Node.js has that of a network error in `code`.
  const code = String(
    error.Code ?? (error.$metadata?.httpStatusCode ? error.name : (error.code ?? error.name)),
  )
  const canonical = SYNONYMS[code] ?? code
  const message = MESSAGES[canonical]
  // Errors of credentials and clock concern all regions.
  const everywhere = /^(?:CredentialsProviderError|ExpiredToken|RequestTimeTooSkewed)$/.test(canonical)
  const text = message
    ? message(said, action)
    : `${action} failed: ${code === 'Error' ? '' : `${code}: `}${said}`
  return new Ec2Error(everywhere ? text : `${region}: ${text}`, canonical, everywhere ? '' : region)
}
