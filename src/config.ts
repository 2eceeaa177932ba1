import { envSchema } from 'env-schema'
import { parse as parseDatabaseUrl } from 'pg-connection-string'
import { type Static, Type } from 'typebox'

const whole = (fallback: number, minimum: number, maximum: number) =>
  Type.Integer({ default: fallback, minimum, maximum })

/** Every limit, its default and its bounds. `KITH_LIMIT_<NAME>` overrides one. */
const limitVariables = {
  KITH_LIMIT_BODY_BYTES: whole(1_048_576, 1, 104_857_600),
  KITH_LIMIT_BATCH_BYTES: whole(8_388_608, 1, 104_857_600),
  KITH_LIMIT_JSON_DEPTH: whole(32, 1, 512),
  KITH_LIMIT_REQUEST_KEYS: whole(300, 1, 10_000),
  KITH_LIMIT_ENTITY_KEYS: whole(1_000, 1, 100_000),
  KITH_LIMIT_KEY_BYTES: whole(150, 1, 1_000),
  KITH_LIMIT_STRING_BYTES: whole(65_536, 1, 10_485_760),
  KITH_LIMIT_ENTITY_BYTES: whole(524_288, 1, 52_428_800),
  KITH_LIMIT_PROFILE_CHARACTERS: whole(255, 1, 10_000),
  KITH_LIMIT_EMAIL_CHARACTERS: whole(254, 1, 1_000),
  KITH_LIMIT_URL_BYTES: whole(8_192, 64, 65_536),
  KITH_LIMIT_HEADER_BYTES: whole(16_384, 1_024, 1_048_576),
  KITH_LIMIT_TOKEN_BYTES: whole(8_192, 256, 65_536),
  KITH_LIMIT_CONSENTS: whole(100, 1, 1_000),
  KITH_LIMIT_LINKS: whole(1_000, 1, 10_000),
  KITH_LIMIT_PLACEHOLDERS: whole(100, 1, 10_000),
  KITH_LIMIT_STACKS: whole(1_000, 1, 100_000),
  KITH_LIMIT_ATTRIBUTES: whole(5_000, 1, 100_000),
  KITH_LIMIT_CONSENT_TYPES: whole(100, 1, 10_000),
  // The contract promises that 500 may be asked for as the most, so this only lowers it.
  KITH_LIMIT_PAGE: whole(500, 1, 500),
  KITH_LIMIT_REQUEST_MS: whole(10_000, 100, 600_000),
  KITH_LIMIT_IN_FLIGHT: whole(1_024, 1, 100_000),
  KITH_LIMIT_IN_FLIGHT_BYTES: whole(67_108_864, 1_048_576, 10_737_418_240),
  KITH_LIMIT_ANSWER_BYTES: whole(33_554_432, 1_048_576, 10_737_418_240),
  KITH_LIMIT_CONNECTIONS: whole(8_192, 1, 100_000),
}

const text = (fallback: string) => Type.String({ default: fallback })
const optionalText = Type.Optional(Type.String({ minLength: 1 }))

/**
 * Those of the OpenTelemetry specification that decide whether there are traces, and of which requests. Where they are sent,
 * and how, the exporter reads by itself: OTEL_EXPORTER_OTLP_HEADERS, _TIMEOUT, _COMPRESSION, _CERTIFICATE and their like
 * are a list that is kept elsewhere.
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

const variables = Type.Object({
  HOST: text('127.0.0.1'),
  PORT: whole(8080, 0, 65_535),
  DATABASE_URL: optionalText,
  LOG_LEVEL: Type.Enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], { default: 'info' }),
  AUTH_SECRET: optionalText,
  AUTH_ISSUER: optionalText,
  AUTH_JWKS_URL: optionalText,
  AUTH_AUDIENCE: optionalText,
  TLS_CERT_FILE: optionalText,
  TLS_KEY_FILE: optionalText,
  KITH_LOG_FORMAT: Type.Enum(['auto', 'pretty', 'json'], { default: 'auto' }),
  KITH_DATA_DIR: text('.kith'),
  KITH_BEHIND_PROXY: whole(0, 0, 9),
  KITH_CORS_ORIGINS: optionalText,
  KITH_RATE_READ: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  KITH_RATE_READ_BURST: whole(0, 0, 10_000_000),
  KITH_RATE_WRITE: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  KITH_RATE_WRITE_BURST: whole(0, 0, 10_000_000),
  KITH_RATE_STORE: Type.String({ default: 'memory', pattern: '^(memory|postgresql|rediss?://.+)$' }),
  KITH_DATABASE_CONNECTIONS: whole(8, 1, 200),
  ...traceVariables,
  ...limitVariables,
})

type Variables = Static<typeof variables>

/** Limits by their plain names: bytes, characters, counts and milliseconds, as the name's last word says. */
export type Limits = {
  bodyBytes: number
  batchBytes: number
  jsonDepth: number
  requestKeys: number
  entityKeys: number
  keyBytes: number
  stringBytes: number
  entityBytes: number
  profileCharacters: number
  emailCharacters: number
  urlBytes: number
  headerBytes: number
  tokenBytes: number
  consents: number
  links: number
  placeholders: number
  stacks: number
  attributes: number
  consentTypes: number
  page: number
  requestMs: number
  inFlight: number
  inFlightBytes: number
  answerBytes: number
  connections: number
}

/** Requests of one token subject: so many each second, and beyond them `burst` more each minute. */
export type Budget = Readonly<{ perSecond: number; burst: number }>

/** A budget that is absent is not limited. `store` is where requests are counted: memory, postgresql, or Redis's address. */
export type Rates = Readonly<{ read: Budget | undefined; write: Budget | undefined; store: string }>

/** Which requests are traced: a sampler of the OpenTelemetry specification, and the share of those it takes by chance. */
export type Traces = Readonly<{ sampler: string; ratio: number }>

export type Config = Readonly<{
  host: string
  port: number
  /** Absent: the embedded PostgreSQL below `dataDir`. */
  databaseUrl: string | undefined
  databaseConnections: number
  dataDir: string
  logLevel: string
  /** `auto` is `pretty` on a terminal, else `json`. */
  logFormat: 'auto' | 'pretty' | 'json'
  authSecret: string | undefined
  /** Whose tokens are accepted beside the service's own. */
  outsideIssuer: Readonly<{ issuer: string; jwksUrl: string; audience: string }> | undefined
  tls: { certFile: string; keyFile: string } | undefined
  /** How many proxies stand in front: so many entries of X-Forwarded-For are theirs. */
  behindProxy: number
  /** The web pages' origins that browsers may call from. */
  corsOrigins: readonly string[]
  rates: Rates
  /** Absent: no traces. */
  traces: Traces | undefined
  limits: Readonly<Limits>
}>

/** The start stops with this: every problem of the environment in one list. */
export class ConfigError extends Error {
  readonly problems: readonly string[]

  constructor(problems: string[]) {
    super(`The configuration cannot be used:\n${problems.map(problem => `  - ${problem}`).join('\n')}`)
    this.problems = problems
    this.name = 'ConfigError'
  }
}

const loopbackHosts = new Set(['127.0.0.1', '::1', 'localhost'])

/** Environment to one frozen, validated object. Nobody else reads `process.env`. Throws {@link ConfigError}. */
export function loadConfig(environment: NodeJS.ProcessEnv): Config {
  const { values, problems } = readVariables(environment)
  if (Boolean(values.TLS_CERT_FILE) !== Boolean(values.TLS_KEY_FILE))
    problems.push('TLS_CERT_FILE and TLS_KEY_FILE go together')
  const servedSafely = Boolean(values.TLS_CERT_FILE) || values.KITH_BEHIND_PROXY > 0
  if (values.HOST !== undefined && !loopbackHosts.has(values.HOST) && !servedSafely)
    problems.push(
      `HOST is ${values.HOST}: plain HTTP is served on loopback only; set TLS_CERT_FILE and TLS_KEY_FILE, or KITH_BEHIND_PROXY=1 where a proxy ends TLS`,
    )
  problems.push(...problemsOfDatabase(values), ...problemsOfSecret(values), ...problemsOfIssuer(values))
  problems.push(...problemsOfOrigins(values), ...problemsOfRates(values))
  if (problems.length > 0) throw new ConfigError(problems)
  return freeze(values)
}

const databaseUrlExample = 'such as postgresql://user:password@host:5432/database'

/** Read as the driver reads it. The URL is never quoted: it holds a password. */
function problemsOfDatabase({ DATABASE_URL: url }: Variables): string[] {
  if (url === undefined) return []
  const refusal = [`DATABASE_URL must be a PostgreSQL URL, ${databaseUrlExample}`]
  if (!/^postgres(ql)?:\/\//.test(url)) return refusal
  try {
    if (parseDatabaseUrl(url).host) return []
    return [`DATABASE_URL must name a host, ${databaseUrlExample}, or a socket's folder: …?host=/run/postgresql`]
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException
    return path === undefined ? refusal : [`DATABASE_URL names the file ${path}, which cannot be read (${code})`]
  }
}

function problemsOfSecret({ AUTH_SECRET: secret }: Variables): string[] {
  if (secret === undefined) return []
  if (Buffer.byteLength(secret) < 32) return ['AUTH_SECRET must have 32 bytes or more']
  return new Set(secret).size === 1 ? ['AUTH_SECRET must not be one character again and again'] : []
}

function problemsOfIssuer({ AUTH_ISSUER: issuer, AUTH_JWKS_URL: jwksUrl, AUTH_AUDIENCE: audience }: Variables) {
  const given = [issuer, jwksUrl, audience].filter(value => value !== undefined).length
  const problems = given === 0 || given === 3 ? [] : ['AUTH_ISSUER, AUTH_JWKS_URL and AUTH_AUDIENCE go together']
  if (issuer === 'kith') problems.push("AUTH_ISSUER must not be kith: so the service's own tokens are called")
  if (jwksUrl !== undefined && !isSafeUrl(jwksUrl))
    problems.push('AUTH_JWKS_URL must be an https address without a user; http is for loopback only')
  return problems
}

/** Whoever could answer in the issuer's place would make tokens for every organization. */
function isSafeUrl(text: string): boolean {
  const url = URL.parse(text)
  if (url?.username !== '' || url.password !== '') return false
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  return url.protocol === 'https:' || (url.protocol === 'http:' && loopbackHosts.has(host))
}
const originsOf = ({ KITH_CORS_ORIGINS: origins }: Variables) =>
  origins === undefined ? [] : origins.split(',').map(origin => origin.trim())

/** An origin is what a browser sends: no path, no default port. Compared as text, a misspelt one would never match. */
function problemsOfOrigins(values: Variables): string[] {
  const isWrong = (origin: string) => !/^https?:/.test(origin) || URL.parse(origin)?.origin !== origin
  return originsOf(values)
    .filter(isWrong)
    .map(origin => `KITH_CORS_ORIGINS has ${origin}, which is no origin such as https://app.example`)
}

function problemsOfRates(values: Variables): string[] {
  const kinds = ['READ', 'WRITE'] as const
  return kinds
    .filter(kind => values[`KITH_RATE_${kind}_BURST`] > 0 && values[`KITH_RATE_${kind}`] === undefined)
    .map(kind => `KITH_RATE_${kind}_BURST goes beyond KITH_RATE_${kind}, which is not set`)
}

const budgetOf = (perSecond: number | undefined, burst: number): Budget | undefined =>
  perSecond === undefined ? undefined : Object.freeze({ perSecond, burst })

/** An address to send them to is enough. */
function wantsTraces(values: Variables): boolean {
  const { OTEL_TRACES_EXPORTER: exporter, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } = values
  const addressed = endpoint !== undefined || values.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT !== undefined
  return values.OTEL_SDK_DISABLED !== 'true' && exporter !== 'none' && (exporter === 'otlp' || addressed)
}

/** What the commands read that speak to a service (cli/connection.ts): whoever sets it may run all commands with it. */
const ofCommands = ['KITH_URL', 'KITH_TOKEN', 'KITH_CLIENT_ID', 'KITH_CLIENT_SECRET']

function readVariables(environment: NodeJS.ProcessEnv): { values: Variables; problems: string[] } {
  const known = Object.keys(variables.properties)
  const mayStand = new Set([...known, ...ofCommands])
  const unknown = Object.keys(environment).filter(name => /^(KITH|AUTH)_/.test(name) && !mayStand.has(name))
  const problems = unknown.map(name => `${name} is not a setting of kith`)
  const given = Object.fromEntries(known.flatMap(name => (environment[name] ? [[name, environment[name]]] : [])))
  try {
    return { values: envSchema<Variables>({ schema: variables, data: given, env: false }), problems }
  } catch (error) {
    const faults = (
      error as { errors?: { instancePath: string; message?: string; params: { allowedValues?: string[] } }[] }
    ).errors
    if (!faults) throw error
    for (const fault of faults)
      problems.push(
        `${fault.instancePath.slice(1)} ${fault.message}${fault.params.allowedValues ? `: ${fault.params.allowedValues.join(', ')}` : ''}`,
      )
    return { values: given as unknown as Variables, problems }
  }
}

const camelCase = (name: string) => name.toLowerCase().replace(/_(.)/g, (_, letter) => letter.toUpperCase())

function freeze(values: Variables): Config {
  const limits = Object.fromEntries(
    Object.keys(limitVariables).map(name => [
      camelCase(name.slice('KITH_LIMIT_'.length)),
      values[name as keyof typeof limitVariables],
    ]),
  ) as Limits
  return Object.freeze({
    host: values.HOST,
    port: values.PORT,
    databaseUrl: values.DATABASE_URL,
    databaseConnections: values.KITH_DATABASE_CONNECTIONS,
    dataDir: values.KITH_DATA_DIR,
    logLevel: values.LOG_LEVEL,
    logFormat: values.KITH_LOG_FORMAT,
    authSecret: values.AUTH_SECRET,
    outsideIssuer: values.AUTH_ISSUER
      ? Object.freeze({
          issuer: values.AUTH_ISSUER,
          jwksUrl: values.AUTH_JWKS_URL!,
          audience: values.AUTH_AUDIENCE!,
        })
      : undefined,
    tls: values.TLS_CERT_FILE ? { certFile: values.TLS_CERT_FILE, keyFile: values.TLS_KEY_FILE! } : undefined,
    behindProxy: values.KITH_BEHIND_PROXY,
    corsOrigins: Object.freeze(originsOf(values)),
    rates: Object.freeze({
      read: budgetOf(values.KITH_RATE_READ, values.KITH_RATE_READ_BURST),
      write: budgetOf(values.KITH_RATE_WRITE, values.KITH_RATE_WRITE_BURST),
      store: values.KITH_RATE_STORE,
    }),
    traces: wantsTraces(values)
      ? Object.freeze({ sampler: values.OTEL_TRACES_SAMPLER, ratio: values.OTEL_TRACES_SAMPLER_ARG })
      : undefined,
    limits: Object.freeze(limits),
  })
}
