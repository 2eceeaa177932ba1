import { isIPv4 } from 'node:net'
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import ipaddr from 'ipaddr.js'
import { parse as parseServerUrl } from 'pg-connection-string'
import type { Static } from 'typebox'
import { Type } from '../values/json-schema.ts'
import { type ArchiveAddress, parseArchiveAddress } from './archive-address.ts'
import { DatabaseUrlError, parseDatabaseUrl } from './database-url.ts'

const wholeNumber = (fallback: number, minimum: number, maximum: number) =>
  Type.Integer({ default: fallback, minimum, maximum })

/** All limits with their defaults and bounds. */
const limitVariables = {
  KITH_LIMIT_BODY_BYTES: wholeNumber(1_048_576, 1, 104_857_600),
  KITH_LIMIT_BATCH_BYTES: wholeNumber(8_388_608, 1, 104_857_600),
  KITH_LIMIT_JSON_DEPTH: wholeNumber(32, 1, 512),
  // A body of less than 16 KiB cannot have as many members, so it is parsed without counting them.
  KITH_LIMIT_JSON_MEMBERS: wholeNumber(10_000, 8_192, 10_000_000),
  KITH_LIMIT_REQUEST_KEYS: wholeNumber(300, 1, 10_000),
  KITH_LIMIT_ENTITY_KEYS: wholeNumber(1_000, 1, 100_000),
  KITH_LIMIT_KEY_BYTES: wholeNumber(150, 1, 1_000),
  KITH_LIMIT_STRING_BYTES: wholeNumber(65_536, 1, 10_485_760),
  KITH_LIMIT_ENTITY_BYTES: wholeNumber(524_288, 1, 52_428_800),
  KITH_LIMIT_PROFILE_CHARACTERS: wholeNumber(255, 1, 10_000),
  KITH_LIMIT_EMAIL_CHARACTERS: wholeNumber(254, 1, 1_000),
  KITH_LIMIT_URL_BYTES: wholeNumber(8_192, 64, 65_536),
  KITH_LIMIT_HEADER_BYTES: wholeNumber(16_384, 1_024, 1_048_576),
  KITH_LIMIT_TOKEN_BYTES: wholeNumber(8_192, 256, 65_536),
  KITH_LIMIT_CONSENTS: wholeNumber(100, 1, 1_000),
  KITH_LIMIT_LINKS: wholeNumber(1_000, 1, 10_000),
  KITH_LIMIT_PLACEHOLDERS: wholeNumber(100, 1, 10_000),
  KITH_LIMIT_STACKS: wholeNumber(1_000, 1, 100_000),
  KITH_LIMIT_ATTRIBUTES: wholeNumber(5_000, 1, 100_000),
  KITH_LIMIT_CONSENT_TYPES: wholeNumber(100, 1, 10_000),
  // The contract promises pages of up to 500, so the setting can only lower the limit.
  KITH_LIMIT_PAGE: wholeNumber(500, 1, 500),
  KITH_LIMIT_REQUEST_MS: wholeNumber(10_000, 100, 600_000),
  KITH_LIMIT_IN_FLIGHT: wholeNumber(1_024, 1, 100_000),
  KITH_LIMIT_IN_FLIGHT_BYTES: wholeNumber(67_108_864, 1_048_576, 10_737_418_240),
  KITH_LIMIT_ANSWER_BYTES: wholeNumber(33_554_432, 1_048_576, 10_737_418_240),
  KITH_LIMIT_CONNECTIONS: wholeNumber(8_192, 1, 100_000),
  KITH_LIMIT_CHANGE_STREAMS: wholeNumber(1_024, 1, 100_000),
}

const text = (fallback: string) => Type.String({ default: fallback })
const optionalText = Type.Optional(Type.String({ minLength: 1 }))

/**
 * The variables of the OpenTelemetry specification that decide which requests are traced. The exporter itself reads the
 * variables that decide where and how traces are sent: OTEL_EXPORTER_OTLP_HEADERS, _TIMEOUT, _COMPRESSION, _CERTIFICATE
 * and similar ones. They are not validated here.
 */
const traceVariables = {
  OTEL_SDK_DISABLED: Type.Enum(['true', 'false'], { default: 'false' }),
  OTEL_TRACES_EXPORTER: Type.Optional(Type.Enum(['otlp', 'none'])),
  OTEL_EXPORTER_OTLP_ENDPOINT: optionalText,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: optionalText,
  OTEL_EXPORTER_OTLP_PROTOCOL: Type.Optional(Type.Enum(['http/json', 'http/protobuf'])),
  OTEL_TRACES_SAMPLER: Type.Enum(
    ['always_on', 'always_off', 'traceidratio'].flatMap(sampler => [sampler, `parentbased_${sampler}`]),
    { default: 'parentbased_always_on' },
  ),
  OTEL_TRACES_SAMPLER_ARG: Type.Number({ default: 1, minimum: 0, maximum: 1 }),
}

/** The settings of an S3-compatible store, with the names that other S3 programs use. */
const archiveVariables = {
  KITH_ARCHIVE_ENDPOINT: optionalText,
  AWS_REGION: text('us-east-1'),
  AWS_ACCESS_KEY_ID: optionalText,
  AWS_SECRET_ACCESS_KEY: optionalText,
  AWS_SESSION_TOKEN: optionalText,
}

const variables = Type.Object({
  HOST: text('127.0.0.1'),
  PORT: wholeNumber(8080, 0, 65_535),
  DATABASE_URL: optionalText,
  DATABASE_READ_URL: optionalText,
  LOG_LEVEL: Type.Enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], { default: 'info' }),
  AUTH_SECRET: optionalText,
  AUTH_ISSUER: optionalText,
  AUTH_JWKS_URL: optionalText,
  AUTH_AUDIENCE: optionalText,
  AUTH_CLIENT_ID: optionalText,
  AUTH_CLIENT_SECRET: optionalText,
  AUTH_ROLE_CLAIM: optionalText,
  AUTH_SIGN_IN_SCOPE: text('openid profile email'),
  AUTH_SIGN_IN_NAME: optionalText,
  TLS_CERT_FILE: optionalText,
  TLS_KEY_FILE: optionalText,
  KITH_LOG_FORMAT: Type.Enum(['auto', 'pretty', 'json'], { default: 'auto' }),
  KITH_ROLE: Type.Enum(['primary', 'reader'], { default: 'primary' }),
  KITH_READER_MAX_LAG_SECONDS: wholeNumber(60, 1, 86_400),
  KITH_DATA_DIR: text('.kith'),
  KITH_MASTER_KEY_FILE: optionalText,
  KITH_BEHIND_PROXY: wholeNumber(0, 0, 9),
  KITH_PUBLIC_URL: optionalText,
  KITH_SECURITY_CONTACT: optionalText,
  KITH_CORS_ORIGINS: optionalText,
  KITH_WEBHOOK_ALLOW: optionalText,
  KITH_LEDGER_ORIGIN: text('kith'),
  KITH_LOG_RETENTION_DAYS: Type.Optional(Type.Integer({ minimum: 1, maximum: 36_500 })),
  KITH_SEGMENT_CLOCK_MINUTES: wholeNumber(60, 1, 60),
  KITH_ACCESS_LOG: Type.Enum(['on', 'strict', 'off'], { default: 'on' }),
  KITH_ACCESS_LOG_RETENTION_DAYS: wholeNumber(365, 1, 36_500),
  KITH_RATE_READ: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  KITH_RATE_READ_BURST: wholeNumber(0, 0, 10_000_000),
  KITH_RATE_WRITE: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  KITH_RATE_WRITE_BURST: wholeNumber(0, 0, 10_000_000),
  KITH_RATE_PAGES: wholeNumber(20, 1, 1_000_000),
  KITH_RATE_PAGES_BURST: wholeNumber(600, 0, 10_000_000),
  KITH_RATE_STORE: Type.Enum(['memory', 'postgresql'], { default: 'memory' }),
  KITH_DATABASE_CONNECTIONS: wholeNumber(8, 1, 200),
  KITH_DATABASE_WAIT_SECONDS: wholeNumber(300, 0, 86_400),
  KITH_ARCHIVE: optionalText,
  KITH_ARCHIVE_SECONDS: wholeNumber(60, 1, 3_600),
  KITH_ARCHIVE_DAYS: wholeNumber(7, 1, 3_650),
  ...archiveVariables,
  ...traceVariables,
  ...limitVariables,
})

type Variables = Static<typeof variables>

type CamelCase<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name

/** Converts a name with underscores, such as `BODY_BYTES` or `body_bytes`, to camelCase. */
export const camelCase = <Name extends string>(name: Name) =>
  name.toLowerCase().replace(/_(.)/g, (_, letter) => letter.toUpperCase()) as CamelCase<Lowercase<Name>>

type LimitVariable = keyof typeof limitVariables

/**
 * The limits, by the names of their settings without `KITH_LIMIT_`. The last word of a name is its unit: bytes,
 * characters or milliseconds. Other limits are counts.
 */
export type Limits = {
  [Variable in LimitVariable as Variable extends `KITH_LIMIT_${infer Name}`
    ? CamelCase<Lowercase<Name>>
    : never]: number
}

function limitsOf(readValue: (variable: LimitVariable) => number): Limits {
  const names = Object.keys(limitVariables) as LimitVariable[]
  return Object.fromEntries(names.map(name => [camelCase(name.slice('KITH_LIMIT_'.length)), readValue(name)])) as Limits
}

/** The limits of a service whose environment sets none. */
export const defaultLimits: Readonly<Limits> = Object.freeze(
  limitsOf(name => (limitVariables[name] as unknown as { default: number }).default),
)

/** A rate limit: `perSecond` requests per second, and up to `burst` more per minute. */
export type Budget = Readonly<{ perSecond: number; burst: number }>

/**
 * The rate limits of a token subject, which has no limit if its budget is undefined, and of an address that requests
 * pages. `store` is the place where the requests of subjects are counted.
 */
export type Rates = Readonly<{
  read: Budget | undefined
  write: Budget | undefined
  pages: Budget
  store: 'memory' | 'postgresql'
}>

/** The sampling of traces: a sampler of the OpenTelemetry specification, and its ratio from 0 to 1. */
export type Traces = Readonly<{ sampler: string; ratio: number }>

export type Config = ReturnType<typeof freeze>

/** Stops a start. Its message lists all problems of the environment. */
export class ConfigError extends Error {
  readonly problems: readonly string[]

  constructor(problems: string[]) {
    super(`The configuration cannot be used:\n${problems.map(problem => `  - ${problem}`).join('\n')}`)
    this.problems = problems
    this.name = 'ConfigError'
  }
}

/** Whether only this machine can reach a host. */
export const isLoopbackHost = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))

/**
 * Validates the environment and returns it as one frozen object. Only this module reads `process.env`. Throws
 * {@link ConfigError}.
 */
export function loadConfig(environment: NodeJS.ProcessEnv): Config {
  const { values, problems } = readVariables(environment)
  problems.push(...problemsOf(values))
  if (problems.length > 0) throw new ConfigError(problems)
  return freeze(values)
}

/** The problems of settings that are each valid on their own. */
function* problemsOf(values: Variables): Generator<string> {
  if (Boolean(values.TLS_CERT_FILE) !== Boolean(values.TLS_KEY_FILE))
    yield 'TLS_CERT_FILE and TLS_KEY_FILE must be set together'
  const isEncrypted = Boolean(values.TLS_CERT_FILE) || values.KITH_BEHIND_PROXY > 0
  if (values.HOST !== undefined && !isLoopbackHost(values.HOST) && !isEncrypted)
    yield `HOST is ${values.HOST}: plain HTTP is served on loopback only; set TLS_CERT_FILE and TLS_KEY_FILE, or KITH_BEHIND_PROXY=1 where a proxy ends TLS`
  yield* problemsOfDatabase('DATABASE_URL', values.DATABASE_URL)
  yield* problemsOfDatabase('DATABASE_READ_URL', values.DATABASE_READ_URL)
  yield* problemsOfRole(values)
  yield* problemsOfSecret(values)
  yield* problemsOfIssuer(values)
  yield* problemsOfIssuerClient(values)
  yield* problemsOfOrigins(values)
  for (const range of rangesOf(values).filter(range => !ipaddr.isValidCIDR(range)))
    yield `KITH_WEBHOOK_ALLOW has ${range}, which is neither an address nor a range such as 10.1.0.0/16`
  for (const kind of ['READ', 'WRITE'] as const)
    if (values[`KITH_RATE_${kind}_BURST`] > 0 && values[`KITH_RATE_${kind}`] === undefined)
      yield `KITH_RATE_${kind}_BURST needs KITH_RATE_${kind}, which is not set`
  yield* problemsOfLedgerOrigin(values)
  yield* problemsOfPublicUrl(values)
  yield* problemsOfSecurityContact(values)
  yield* problemsOfArchive(values)
}

const databaseUrlExample = 'such as postgresql://user:password@host:5432/database'

/** Parses the URL as the connections do. The problems never quote it, because it contains a password. */
function* problemsOfDatabase(name: string, url: string | undefined): Generator<string> {
  if (url === undefined) return
  const refusal = `${name} must be a PostgreSQL URL, ${databaseUrlExample}`
  if (!/^postgres(ql)?:\/\//.test(url)) return yield refusal
  try {
    if (parseDatabaseUrl(url).urls.every(each => parseServerUrl(each).host)) return
    yield `${name} must name a host, ${databaseUrlExample}, or a socket's folder: …?host=/run/postgresql`
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException
    if (error instanceof DatabaseUrlError) yield `${name} ${error.message}`
    else yield path === undefined ? refusal : `${name} names the file ${path}, which cannot be read (${code})`
  }
}

/** A reader has one database, which is a standby, so it cannot store anything. */
function* problemsOfRole(values: Variables): Generator<string> {
  const { KITH_ROLE: role, DATABASE_URL: url, DATABASE_READ_URL: readUrl } = values
  if (role !== 'reader') {
    if (readUrl === undefined || url !== undefined) yield* problemsOfReads('DATABASE_READ_URL', readUrl)
    else yield 'DATABASE_READ_URL needs DATABASE_URL: the embedded database has no standby'
    return
  }
  if (url === undefined) yield 'KITH_ROLE=reader needs DATABASE_URL, which names the standby'
  yield* problemsOfReads('DATABASE_URL', url)
  if (readUrl !== undefined)
    yield 'DATABASE_READ_URL must not be set with KITH_ROLE=reader, whose DATABASE_URL names the standby'
  if (values.KITH_RATE_STORE === 'postgresql')
    yield 'KITH_RATE_STORE must not be postgresql with KITH_ROLE=reader, which stores nothing'
  if (values.KITH_ACCESS_LOG === 'strict')
    yield 'KITH_ACCESS_LOG must not be strict with KITH_ROLE=reader, which stores nothing'
}

/**
 * Checks that a URL for reads names standbys. Several hosts mean a primary by default, and a reader would refuse its
 * standbys.
 */
function* problemsOfReads(name: string, url: string | undefined): Generator<string> {
  if (url === undefined || [...problemsOfDatabase(name, url)].length > 0) return
  if (['read-write', 'primary'].includes(parseDatabaseUrl(url).wants))
    yield `${name} is read from a standby, so it needs target_session_attrs=standby, prefer-standby, read-only or any`
}

function* problemsOfSecret({ AUTH_SECRET: secret }: Variables): Generator<string> {
  if (secret !== undefined && Buffer.byteLength(secret) < 32) yield 'AUTH_SECRET must have 32 bytes or more'
}

function* problemsOfIssuer(values: Variables): Generator<string> {
  const { AUTH_ISSUER: issuer, AUTH_JWKS_URL: jwksUrl, AUTH_AUDIENCE: audience, AUTH_ROLE_CLAIM: roleClaim } = values
  const provided = [issuer, jwksUrl, audience].filter(value => value !== undefined).length
  if (provided !== 0 && provided !== 3) yield 'AUTH_ISSUER, AUTH_JWKS_URL and AUTH_AUDIENCE must be set together'
  if (roleClaim !== undefined && issuer === undefined) yield 'AUTH_ROLE_CLAIM needs AUTH_ISSUER, which is not set'
  if (issuer === 'kith') yield "AUTH_ISSUER must not be kith, the issuer of the service's own tokens"
  if (jwksUrl !== undefined && !isSafeUrl(jwksUrl))
    yield 'AUTH_JWKS_URL must be an https URL without a user; http is allowed on loopback only'
}

/** kith finds the endpoints of the issuer by its name, so the name must be a URL. */
function* problemsOfIssuerClient(values: Variables): Generator<string> {
  const { AUTH_CLIENT_ID: id, AUTH_CLIENT_SECRET: secret, AUTH_ISSUER: issuer, AUTH_SIGN_IN_SCOPE: scope } = values
  if (id === undefined) {
    if (secret !== undefined) yield 'AUTH_CLIENT_SECRET needs AUTH_CLIENT_ID, which is not set'
    return
  }
  if (!scope.split(' ').includes('openid')) yield 'AUTH_SIGN_IN_SCOPE must contain the scope openid'
  if (issuer === undefined) yield 'AUTH_CLIENT_ID needs AUTH_ISSUER, which is not set'
  else if (!isSafeUrl(issuer))
    yield 'AUTH_ISSUER must be an https URL if AUTH_CLIENT_ID is set; http is allowed on loopback only'
}

/**
 * Whether the URL of the keys is safe. An attacker who can answer in place of the issuer can issue tokens for every
 * organization.
 */
function isSafeUrl(text: string): boolean {
  const url = URL.parse(text)
  if (url?.username !== '' || url.password !== '') return false
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(host))
}

/** Links begin with this URL, and a link in a mail must not travel in plain text. */
function* problemsOfPublicUrl({ KITH_PUBLIC_URL: url }: Variables): Generator<string> {
  if (url !== undefined && (!isSafeUrl(url) || /[?#\s]/.test(url)))
    yield 'KITH_PUBLIC_URL must be an https URL without a user, a query and a fragment; http is allowed on loopback only'
}

/** An archive contains all data, so it must not travel in plain text. */
function* problemsOfArchive(values: Variables): Generator<string> {
  const { KITH_ARCHIVE: archive, KITH_ARCHIVE_ENDPOINT: endpoint, DATABASE_URL: url } = values
  if (endpoint !== undefined && !isSafeUrl(endpoint))
    yield 'KITH_ARCHIVE_ENDPOINT must be an https URL without a user; http is allowed on loopback only'
  if (archive === undefined) return
  if (url !== undefined)
    yield 'KITH_ARCHIVE is for the embedded database only: archive the server of DATABASE_URL with its own means, by docs/backups.md#archive-the-log'
  const address = parseArchiveAddress(archive, values)
  if (typeof address === 'string') yield `KITH_ARCHIVE ${address}`
}

function archiveOf(values: Variables) {
  if (values.KITH_ARCHIVE === undefined) return undefined
  // The address has been checked with the other settings.
  const address = parseArchiveAddress(values.KITH_ARCHIVE, values) as ArchiveAddress
  return Object.freeze({ address, seconds: values.KITH_ARCHIVE_SECONDS, days: values.KITH_ARCHIVE_DAYS })
}

/** The contact is a line of a text file, so it has no spaces and no line breaks, which URL.parse would drop. */
function* problemsOfSecurityContact({ KITH_SECURITY_CONTACT: contact }: Variables): Generator<string> {
  if (contact === undefined) return
  const isMail = /^mailto:[\x21-\x3f\x41-\x7e]+@[\x21-\x3f\x41-\x7e]+$/i.test(contact)
  const isPage = /^https:[\x21-\x7e]+$/i.test(contact) && isSafeUrl(contact)
  if (!isMail && !isPage)
    yield 'KITH_SECURITY_CONTACT must be an address such as mailto:security@example.org, or an https URL without a user'
}

const originsOf = ({ KITH_CORS_ORIGINS: origins }: Variables) =>
  origins === undefined ? [] : origins.split(',').map(origin => origin.trim())

/**
 * An origin has the form that browsers send, without path and default port. It is compared as text, so any other form
 * would never match.
 */
function* problemsOfOrigins(values: Variables): Generator<string> {
  for (const origin of originsOf(values))
    if (!/^https?:/.test(origin) || URL.parse(origin)?.origin !== origin)
      yield `KITH_CORS_ORIGINS has ${origin}, which is not an origin such as https://app.example`
}

const rangesOf = ({ KITH_WEBHOOK_ALLOW: ranges }: Variables) =>
  ranges === undefined ? [] : ranges.split(',').map(range => rangeOf(range.trim()))

/** A single address as a range of one address. */
function rangeOf(text: string): string {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return `${text}/32`
  return ipaddr.IPv6.isValid(text) ? `${text}/128` : text
}

const maxLedgerOriginCharacters = 255

/** The origin is part of the names of keys in signed notes. */
function* problemsOfLedgerOrigin({ KITH_LEDGER_ORIGIN: origin }: Variables): Generator<string> {
  const isName = /^[^\p{White_Space}\p{Cc}+/]+(\/[^\p{White_Space}\p{Cc}+/]+)*$/u.test(origin)
  if (!isName || !origin.isWellFormed() || origin.length > maxLedgerOriginCharacters)
    yield `KITH_LEDGER_ORIGIN must be a name such as kith.example.org/consents: at most ${maxLedgerOriginCharacters} characters, without spaces, plus signs and empty parts`
}

/** The form of the URL that begins links, with the host in lower case and no slash at the end. */
const withoutSlash = (url: string | undefined) => url && new URL(url).href.replace(/\/+$/, '')

const budgetOf = (perSecond: number | undefined, burst: number): Budget | undefined =>
  perSecond === undefined ? undefined : Object.freeze({ perSecond, burst })

/** Whether traces are on. An endpoint is enough to turn them on. */
function hasTraces(values: Variables): boolean {
  const { OTEL_TRACES_EXPORTER: exporter, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } = values
  const addressed = endpoint !== undefined || values.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT !== undefined
  return values.OTEL_SDK_DISABLED !== 'true' && exporter !== 'none' && (exporter === 'otlp' || addressed)
}

/** The variables of the commands that call a service (cli/connection.ts). They may be set for any command. */
const commandVariables = ['KITH_URL', 'KITH_TOKEN', 'KITH_CLIENT_ID', 'KITH_CLIENT_SECRET', 'KITH_PROFILE']

/**
 * Converts numbers in place and sets the defaults. Ajv still refuses unknown keywords, types and formats. The check by
 * its meta-schema took a tenth of the processor time of a start, and the optimization of code that runs once took 0.04
 * s.
 */
const validation = {
  allErrors: true,
  useDefaults: true,
  coerceTypes: true,
  validateSchema: false,
  code: { optimize: false },
}
/** Compiled at the first call, because importing a module must not do any work. */
let validateVariables: ValidateFunction | undefined

function readVariables(environment: NodeJS.ProcessEnv): { values: Variables; problems: string[] } {
  const known = Object.keys(variables.properties)
  const allowed = new Set([...known, ...commandVariables])
  const unknown = Object.keys(environment).filter(name => /^(KITH|AUTH)_/.test(name) && !allowed.has(name))
  const problems = unknown.map(name => `${name} is not a setting of kith`)
  const provided = Object.fromEntries(known.flatMap(name => (environment[name] ? [[name, environment[name]]] : [])))
  const values: Record<string, unknown> = provided
  validateVariables ??= new Ajv2020(validation).compile(variables)
  if (!validateVariables(values)) problems.push(...(validateVariables.errors ?? []).map(sentenceOf))
  return { values: values as Variables, problems }
}

function sentenceOf({ instancePath, message, params }: ErrorObject): string {
  const allowed = (params as { allowedValues?: string[] }).allowedValues
  return `${instancePath.slice(1)} ${message}${allowed ? `: ${allowed.join(', ')}` : ''}`
}

function freeze(values: Variables) {
  return Object.freeze({
    host: values.HOST,
    port: values.PORT,
    /** Undefined for the embedded PostgreSQL below `dataDir`. */
    databaseUrl: values.DATABASE_URL,
    databaseConnections: values.KITH_DATABASE_CONNECTIONS,
    /** The time for which a start waits for an unreachable server. */
    databaseWaitSeconds: values.KITH_DATABASE_WAIT_SECONDS,
    /** With `reader`, `databaseUrl` names a standby, and the process only reads. */
    role: values.KITH_ROLE,
    /** The standby that answers some reads of a `primary` process. */
    databaseReadUrl: values.DATABASE_READ_URL,
    /** A standby that is further behind gets no reads, and a reader on it is not ready. */
    readerMaxLagSeconds: values.KITH_READER_MAX_LAG_SECONDS,
    dataDir: values.KITH_DATA_DIR,
    /** The archive of the embedded database, its interval, and the days that it keeps. Undefined without an archive. */
    archive: archiveOf(values),
    /** The file of the master keys. Undefined means the file of the data folder, or none if `databaseUrl` is set. */
    masterKeyFile: values.KITH_MASTER_KEY_FILE,
    logLevel: values.LOG_LEVEL,
    /** `auto` means `pretty` on a terminal, else `json`. */
    logFormat: values.KITH_LOG_FORMAT,
    authSecret: values.AUTH_SECRET,
    /**
     * The issuer whose tokens are accepted besides the service's own. `roleClaim` names the claim with a caller's role.
     */
    outsideIssuer: values.AUTH_ISSUER
      ? Object.freeze({
          issuer: values.AUTH_ISSUER,
          jwksUrl: values.AUTH_JWKS_URL!,
          audience: values.AUTH_AUDIENCE!,
          roleClaim: values.AUTH_ROLE_CLAIM,
        })
      : undefined,
    /** The client for signing in to the console at the outside issuer. `name` is the issuer's name for people. */
    issuerClient: values.AUTH_CLIENT_ID
      ? Object.freeze({
          id: values.AUTH_CLIENT_ID,
          secret: values.AUTH_CLIENT_SECRET,
          scope: values.AUTH_SIGN_IN_SCOPE,
          name: values.AUTH_SIGN_IN_NAME ?? new URL(values.AUTH_ISSUER!).host,
        })
      : undefined,
    tls: values.TLS_CERT_FILE ? { certFile: values.TLS_CERT_FILE, keyFile: values.TLS_KEY_FILE! } : undefined,
    /** The number of proxies in front of kith, and so of trusted entries of X-Forwarded-For. */
    behindProxy: values.KITH_BEHIND_PROXY,
    /** The URL at which people reach the service, without a slash at the end. */
    publicUrl: withoutSlash(values.KITH_PUBLIC_URL),
    /** The address for reports of vulnerabilities: a mailto: or https: URI. Undefined if the service publishes none. */
    securityContact: values.KITH_SECURITY_CONTACT,
    /** The origins of web pages that may call the API from browsers. */
    corsOrigins: Object.freeze(originsOf(values)),
    /** The address ranges (CIDR) that webhooks may reach although they are not public. */
    webhookAllow: Object.freeze(rangesOf(values)),
    /** The beginning of the origin of ledgers, as `kith.example.org`. */
    ledgerOrigin: values.KITH_LEDGER_ORIGIN,
    /** The number of days after which a change loses its values. Undefined means never. */
    logRetentionDays: values.KITH_LOG_RETENTION_DAYS,
    /** The interval at which the clock moves people into and out of segments. */
    segmentClockMs: values.KITH_SEGMENT_CLOCK_MINUTES * 60_000,
    /** With `strict`, entries are stored before the response is sent. */
    accessLog: values.KITH_ACCESS_LOG,
    accessLogRetentionDays: values.KITH_ACCESS_LOG_RETENTION_DAYS,
    rates: Object.freeze({
      read: budgetOf(values.KITH_RATE_READ, values.KITH_RATE_READ_BURST),
      write: budgetOf(values.KITH_RATE_WRITE, values.KITH_RATE_WRITE_BURST),
      pages: Object.freeze({ perSecond: values.KITH_RATE_PAGES, burst: values.KITH_RATE_PAGES_BURST }),
      store: values.KITH_RATE_STORE,
    }),
    /** Undefined if traces are off. */
    traces: hasTraces(values)
      ? Object.freeze({ sampler: values.OTEL_TRACES_SAMPLER, ratio: values.OTEL_TRACES_SAMPLER_ARG })
      : undefined,
    limits: Object.freeze(limitsOf(name => values[name])),
  })
}
