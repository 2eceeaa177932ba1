import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { limitVariable } from '../../test/support/limit-variable.ts'
import { ConfigError, loadConfig } from './config.ts'

/** The problems of an environment. Empty for a valid one. */
function problemsOf(environment: Record<string, string>): string[] {
  try {
    loadConfig(environment)
    return []
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    const [title, ...problems] = (error as Error).message.split('\n')
    expect(title).toBe('The configuration cannot be used:')
    return problems.map(problem => problem.replace('  - ', ''))
  }
}

/**
 * The number of runs of a property. A validation compiles its schema, which takes 30 ms, so each run has at least 20
 * settings.
 */
const fewRuns = { numRuns: 5 }

describe('an empty environment', () => {
  it('gives the documented defaults', () => {
    expect(loadConfig({})).toEqual({
      host: '127.0.0.1',
      port: 8080,
      databaseUrl: undefined,
      databaseConnections: 8,
      databaseWaitSeconds: 300,
      role: 'primary',
      databaseReadUrl: undefined,
      readerMaxLagSeconds: 60,
      dataDir: '.kith',
      logLevel: 'info',
      logFormat: 'auto',
      authSecret: undefined,
      outsideIssuer: undefined,
      tls: undefined,
      behindProxy: 0,
      publicUrl: undefined,
      ledgerOrigin: 'kith',
      segmentClockMs: 3_600_000,
      accessLog: 'on',
      accessLogRetentionDays: 365,
      corsOrigins: [],
      rates: { read: undefined, write: undefined, pages: { perSecond: 20, burst: 600 }, store: 'memory' },
      traces: undefined,
      webhookAllow: [],
      limits: {
        bodyBytes: 1024 * 1024,
        batchBytes: 8 * 1024 * 1024,
        jsonDepth: 32,
        jsonMembers: 10_000,
        requestKeys: 300,
        entityKeys: 1_000,
        keyBytes: 150,
        stringBytes: 64 * 1024,
        entityBytes: 512 * 1024,
        profileCharacters: 255,
        emailCharacters: 254,
        urlBytes: 8 * 1024,
        headerBytes: 16 * 1024,
        tokenBytes: 8 * 1024,
        consents: 100,
        links: 1_000,
        placeholders: 100,
        stacks: 1_000,
        attributes: 5_000,
        consentTypes: 100,
        page: 500,
        requestMs: 10_000,
        inFlight: 1_024,
        inFlightBytes: 67_108_864,
        answerBytes: 33_554_432,
        connections: 8_192,
        changeStreams: 1_024,
      },
    })
  })

  it('is equal to one with empty values', () => {
    expect(loadConfig({ PORT: '', DATABASE_URL: '', KITH_DATA_DIR: '', AUTH_SECRET: '', TLS_CERT_FILE: '' })).toEqual(
      loadConfig({}),
    )
  })

  it('is not affected by variables of other programs, including NODE_ENV', () => {
    expect(loadConfig({ NODE_ENV: 'production', HOME: '/nowhere', PGHOST: 'elsewhere', port: '1' })).toEqual(
      loadConfig({}),
    )
  })

  it('gives a frozen object', () => {
    const config = loadConfig({})
    expect(Object.isFrozen(config) && Object.isFrozen(config.limits)).toBe(true)
  })
})

describe('a setting', () => {
  it.each([
    ['PORT', 0, 65_535],
    ['KITH_DATABASE_CONNECTIONS', 1, 200],
    ['KITH_LIMIT_REQUEST_MS', 100, 600_000],
    ['KITH_LIMIT_BODY_BYTES', 1, 104_857_600],
  ])('%s must be a whole number from %i to %i, and is named if it is not', (name, min, max) => {
    for (const value of [min, max]) expect(problemsOf({ [name]: String(value) })).toEqual([])
    for (const value of [min - 1, max + 1, min + 0.5])
      expect(problemsOf({ [name]: String(value) })).toEqual([expect.stringMatching(new RegExp(`^${name} must `))])
  })

  it('of a limit changes the limit of the same name', () => {
    const defaults = loadConfig({}).limits
    for (const [name, value] of Object.entries(defaults)) {
      const changed = value === 255 ? 254 : value - 1
      const environment = { [limitVariable(name)]: String(changed) }
      expect(loadConfig(environment).limits).toEqual({ ...defaults, [name]: changed })
    }
  })

  it('of a number refuses any other text', () => {
    const texts = fc.string({ minLength: 1 }).filter(text => text.trim() !== '' && !Number.isFinite(Number(text)))
    const names = ['PORT', ...Object.keys(loadConfig({}).limits).map(limitVariable)]
    const environments = fc.record(Object.fromEntries(names.map(name => [name, texts])))
    fc.assert(
      fc.property(environments, environment => {
        const refused = problemsOf(environment).map(problem => problem.split(' ')[0])
        expect(refused.sort()).toEqual(names.sort())
      }),
      fewRuns,
    )
  })

  it('with the prefix KITH_ that does not exist is refused by its name', () => {
    const names = fc.stringMatching(/^[A-Z][A-Z_]{2,30}$/).map(name => `KITH_TEST_${name}`)
    const environments = fc.dictionary(names, fc.string(), { minKeys: 20, maxKeys: 20, noNullPrototype: true })
    fc.assert(
      fc.property(environments, environment => {
        expect(problemsOf(environment)).toEqual(
          Object.keys(environment).map(name => `${name} is not a setting of kith`),
        )
      }),
      fewRuns,
    )
  })

  it.each(['AUTH_ISSUERS', 'AUTH_JWKS_URI', 'AUTH_JWKS', 'AUTH_SECRETS', 'AUTH_'])(
    '%s is refused by its name, because an operator would rely on it in vain',
    name => {
      expect(problemsOf({ [name]: 'hunter2' })).toEqual([`${name} is not a setting of kith`])
    },
  )

  it('that is a secret is not printed when it is refused', () => {
    expect(problemsOf({ AUTH_SECRET: 'x'.repeat(31) })).toEqual([expect.stringMatching(/^AUTH_SECRET must /)])
    expect(
      problemsOf({ AUTH_SECRET: 'hunter2', PORT: 'x', DATABASE_URL: 'postgres://u:hunter2@h/d' }).join(),
    ).not.toContain('hunter2')
    expect(loadConfig({ AUTH_SECRET: 'x'.repeat(32) }).authSecret).toHaveLength(32)
  })

  it('AUTH_SECRET is measured in bytes', () => {
    expect(problemsOf({ AUTH_SECRET: `${'ü'.repeat(15)}a` })).toHaveLength(1)
    expect(problemsOf({ AUTH_SECRET: `${'ü'.repeat(15)}ab` })).toEqual([])
  })
})

describe('DATABASE_URL', () => {
  it.each([
    'postgresql://kith:s3cret@database.example:5433/kith?sslmode=disable',
    'postgres://[::1]/kith',
    'postgresql://kith@localhost/kith?host=/run/postgresql',
    'postgresql://kith:s3cret@/kith?host=/run/postgresql',
    'postgresql:///kith?host=/run/postgresql',
    'postgresql://%2Frun%2Fpostgresql/kith',
    'postgresql://kith:s3cret@h1:5432,h2:5433/kith?target_session_attrs=primary',
    'postgresql://kith:s3cret@/kith?host=/run/a,/run/b&port=5432,5433',
  ])('accepts %s', url => expect(loadConfig({ DATABASE_URL: url }).databaseUrl).toBe(url))

  it.each([
    ['nonsense', 'be a PostgreSQL URL'],
    ['/run/postgresql', 'be a PostgreSQL URL'],
    ['mysql://kith:s3cret@localhost/kith', 'be a PostgreSQL URL'],
    ['http://kith:s3cret@localhost/', 'be a PostgreSQL URL'],
    ['postgresql://kith:s3cret@[oops/kith', 'be a PostgreSQL URL'],
    ['postgresql://kith:s3cret@localhost:port/kith', 'be a PostgreSQL URL'],
    ['postgresql://kith:s3cret@localhost:65536/kith', 'be a PostgreSQL URL'],
    ['postgresql://kith:s3cret@localhost/%E0%A4%A', 'be a PostgreSQL URL'],
    ['postgresql:///kith', 'name a host'],
    ['postgresql://kith:s3cret@/kith', 'name a host'],
  ])('%s is listed with the other problems, and is not quoted', (url, what) => {
    const problems = problemsOf({ DATABASE_URL: url, PORT: '65536' })
    expect(problems).toHaveLength(2)
    expect(problems).toContainEqual(
      expect.stringMatching(
        new RegExp(`^DATABASE_URL must ${what}, such as postgresql://user:password@host:5432/database`),
      ),
    )
    expect(problems.join()).not.toContain('s3cret')
  })

  it.each([
    ['postgresql://kith:s3cret@h1,h2/kith?port=1,2,3', 'must have one port, or one for each host'],
    ['postgresql://kith:s3cret@h1,,h2/kith', 'must name a host at each place of its list'],
    ['postgresql://kith:s3cret@h1:port,h2/kith', 'must have ports from 1 to 65535'],
    ['postgresql://kith:s3cret@h1/kith?target_session_attrs=master', 'must have as target_session_attrs one of any, '],
  ])('%s is refused as a list of hosts, and is not quoted', (url, problem) => {
    const [refusal, ...others] = problemsOf({ DATABASE_URL: url })
    expect(refusal).toContain(`DATABASE_URL ${problem}`)
    expect(others).toEqual([])
    expect(refusal).not.toMatch(/s3cret|master/)
  })

  it('is refused with the path of a file that does not exist', () => {
    const url = 'postgresql://kith:s3cret@localhost/kith?sslrootcert=/nowhere/ca.pem'
    expect(problemsOf({ DATABASE_URL: url })).toEqual([
      'DATABASE_URL names the file /nowhere/ca.pem, which cannot be read (ENOENT)',
    ])
  })
})

describe('the external issuer', () => {
  const issuer = {
    AUTH_ISSUER: 'https://issuer.example/',
    AUTH_JWKS_URL: 'https://issuer.example/jwks.json',
    AUTH_AUDIENCE: 'https://kith.example',
  }

  it('needs its three settings together', () => {
    expect(loadConfig(issuer).outsideIssuer).toEqual({
      issuer: 'https://issuer.example/',
      jwksUrl: 'https://issuer.example/jwks.json',
      audience: 'https://kith.example',
    })
    const names = Object.keys(issuer)
    for (const name of names) {
      expect(problemsOf({ ...issuer, [name]: '' })).toEqual([
        expect.stringMatching(/^AUTH_ISSUER, .* must be set together$/),
      ])
      expect(problemsOf({ [name]: issuer[name as keyof typeof issuer] })).toHaveLength(1)
    }
  })

  it('has a client for people only with its id, the scope openid and a URL as its name', () => {
    const client = { ...issuer, AUTH_CLIENT_ID: 'kith', AUTH_CLIENT_SECRET: 'hunter2' }
    expect(loadConfig(client).issuerClient).toEqual({
      id: 'kith',
      secret: 'hunter2',
      scope: 'openid profile email',
      name: 'issuer.example',
    })
    expect(loadConfig(issuer).issuerClient).toBeUndefined()
    const first = (environment: Record<string, string>) => problemsOf(environment)[0]
    expect(first({ ...client, AUTH_CLIENT_ID: '' })).toMatch(/^AUTH_CLIENT_SECRET needs AUTH_CLIENT_ID/)
    expect(first({ ...client, AUTH_SIGN_IN_SCOPE: 'profile' })).toMatch(/^AUTH_SIGN_IN_SCOPE must /)
    expect(first({ AUTH_CLIENT_ID: 'kith' })).toMatch(/^AUTH_CLIENT_ID needs AUTH_ISSUER/)
    for (const url of ['issuer.example', 'http://issuer.example'])
      expect(problemsOf({ ...client, AUTH_ISSUER: url })).toEqual([
        expect.stringMatching(/^AUTH_ISSUER must be an https/),
      ])
    expect(problemsOf({ ...client, PORT: 'x' }).join()).not.toContain('hunter2')
  })

  it('must not have the name of the service’s own issuer', () => {
    expect(problemsOf({ ...issuer, AUTH_ISSUER: 'kith' })).toEqual([expect.stringMatching(/^AUTH_ISSUER must not /)])
  })

  it.each(['http://127.0.0.1:9/jwks', 'http://localhost/jwks', 'http://[::1]:9/jwks', 'https://192.0.2.1/jwks'])(
    'may have its keys at %s',
    url => expect(problemsOf({ ...issuer, AUTH_JWKS_URL: url })).toEqual([]),
  )

  it.each([
    'http://issuer.example/jwks',
    'http://127.0.0.1.example/jwks',
    'http://localhost.example/jwks',
    'http://127.0.0.1@issuer.example/jwks',
    'https://user:word@issuer.example/jwks',
    'ftp://issuer.example/jwks',
    'file:///etc/passwd',
    'data:application/json,{}',
    'issuer.example/jwks',
    '//issuer.example/jwks',
    'https://',
  ])('must not have its keys at %s, and the URL is not quoted', url => {
    const problems = problemsOf({ ...issuer, AUTH_JWKS_URL: url })
    expect(problems).toEqual([expect.stringMatching(/^AUTH_JWKS_URL must /)])
    expect(problems.join()).not.toContain('user:word')
  })
})

describe('KITH_RATE_*', () => {
  it('are off by default, and set rate and burst separately for reads and writes', () => {
    const { rates } = loadConfig({ KITH_RATE_READ: '100', KITH_RATE_READ_BURST: '20', KITH_RATE_STORE: 'postgresql' })
    const pages = { perSecond: 20, burst: 600 }
    expect(rates).toEqual({ read: { perSecond: 100, burst: 20 }, write: undefined, pages, store: 'postgresql' })
    expect(loadConfig({ KITH_RATE_WRITE: '5' }).rates.write).toEqual({ perSecond: 5, burst: 0 })
  })

  it('refuse a burst without a rate, a rate of 0 and an unknown store', () => {
    expect(problemsOf({ KITH_RATE_WRITE_BURST: '1' })).toEqual([expect.stringMatching(/^KITH_RATE_WRITE_BURST /)])
    expect(problemsOf({ KITH_RATE_READ: '0' })).toEqual([expect.stringMatching(/^KITH_RATE_READ must /)])
    for (const store of ['disk', 'redis://cache.example'])
      expect(problemsOf({ KITH_RATE_STORE: store })).toEqual([expect.stringMatching(/^KITH_RATE_STORE must /)])
  })
})

describe('KITH_RATE_PAGES', () => {
  it('is never off, and has a burst of its own', () => {
    expect(loadConfig({ KITH_RATE_PAGES: '5', KITH_RATE_PAGES_BURST: '0' }).rates.pages).toEqual({
      perSecond: 5,
      burst: 0,
    })
    expect(problemsOf({ KITH_RATE_PAGES: '0' })).toEqual([expect.stringMatching(/^KITH_RATE_PAGES must /)])
  })
})

describe('KITH_PUBLIC_URL', () => {
  it.each([
    ['https://contact.example', 'https://contact.example'],
    ['https://Contact.Example:8443/kith//', 'https://contact.example:8443/kith'],
    ['http://127.0.0.1:8080/', 'http://127.0.0.1:8080'],
  ])('%s makes links that begin with %s', (KITH_PUBLIC_URL, publicUrl) => {
    expect(loadConfig({ KITH_PUBLIC_URL }).publicUrl).toBe(publicUrl)
  })

  it.each([
    'contact.example',
    'http://contact.example',
    'https://user:word@contact.example',
    'https://contact.example?a=1',
    'https://contact.example/#p',
    'https://contact.example/a b',
    'ftp://contact.example',
    'javascript:alert(1)',
  ])('refuses %s', KITH_PUBLIC_URL => {
    expect(problemsOf({ KITH_PUBLIC_URL })).toEqual([expect.stringMatching(/^KITH_PUBLIC_URL must be an https URL/)])
  })
})

describe('KITH_SECURITY_CONTACT', () => {
  it.each(['mailto:security@contact.example', 'https://contact.example/security?lang=en'])('takes %s', contact => {
    expect(loadConfig({ KITH_SECURITY_CONTACT: contact }).securityContact).toBe(contact)
  })

  it.each([
    'security@contact.example',
    'mailto:security',
    'mailto:a@b@contact.example',
    'mailto:security@contact.example\nExpires: 2099-01-01T00:00:00Z',
    'https://contact.example/a\nContact: mailto:other@contact.example',
    'https://contact.example/a b',
    'http://contact.example',
    'http://localhost/security',
    'https://user:word@contact.example',
    'https:',
    'tel:+15550100',
    'javascript:alert(1)',
  ])('refuses %j', contact => {
    expect(problemsOf({ KITH_SECURITY_CONTACT: contact })).toEqual([
      expect.stringMatching(/^KITH_SECURITY_CONTACT must be /),
    ])
  })
})

describe('KITH_CORS_ORIGINS', () => {
  it('is a list of origins in the form that browsers send', () => {
    const origins = ['https://app.example', 'http://localhost:5173']
    expect(loadConfig({ KITH_CORS_ORIGINS: origins.join(', ') }).corsOrigins).toEqual(origins)
  })

  it.each([
    '*',
    'null',
    'app.example',
    'https://app.example/',
    'https://app.example:443',
    'https://App.example',
    'file:',
  ])('refuses %s, which is not an origin', origin => {
    expect(problemsOf({ KITH_CORS_ORIGINS: `https://a.example,${origin}` })).toEqual([
      expect.stringMatching(/^KITH_CORS_ORIGINS /),
    ])
  })
})

describe('KITH_WEBHOOK_ALLOW', () => {
  it('is a list of ranges of addresses', () => {
    const ranges = ['127.0.0.0/8', 'fd12::/32', '10.1.2.3/32']
    expect(loadConfig({ KITH_WEBHOOK_ALLOW: ranges.join(', ') }).webhookAllow).toEqual(ranges)
    expect(loadConfig({}).webhookAllow).toEqual([])
  })

  it('takes a single address as a range of one', () => {
    expect(loadConfig({ KITH_WEBHOOK_ALLOW: '10.0.0.1, ::1,fd12::/32' }).webhookAllow).toEqual([
      '10.0.0.1/32',
      '::1/128',
      'fd12::/32',
    ])
  })

  it.each(['10.0.0', 'localhost', '10.0.0.0/33', '10.0.0.0/', ''])('refuses %s, which is not a range', range => {
    expect(problemsOf({ KITH_WEBHOOK_ALLOW: `10.0.0.0/8,${range}` })).toEqual([
      expect.stringMatching(/^KITH_WEBHOOK_ALLOW has /),
    ])
  })
})

describe('KITH_LEDGER_ORIGIN', () => {
  it.each(['kith', 'kith.example.org', 'example.org/kith/consents', 'é'])('can be %s', origin => {
    expect(loadConfig({ KITH_LEDGER_ORIGIN: origin }).ledgerOrigin).toBe(origin)
  })

  it.each(['a b', 'a+b', '/kith', 'kith/', 'a//b', 'a\nb', '\u00a0', 'x'.repeat(256)])('refuses %j', origin => {
    expect(problemsOf({ KITH_LEDGER_ORIGIN: origin })).toEqual([
      expect.stringMatching(/^KITH_LEDGER_ORIGIN must be a name such as kith\.example\.org\/consents/),
    ])
  })
})

describe('HOST', () => {
  it.each(['127.0.0.1', '127.0.0.2', '127.255.255.254', '::1', 'localhost'])(
    '%s is loopback, where plain HTTP is allowed',
    host => {
      expect(loadConfig({ HOST: host }).host).toBe(host)
    },
  )

  it.each(['0.0.0.0', '::', '192.0.2.1', 'kith.example', '127.0.0.1.example', '127.1', '128.0.0.1'])(
    '%s needs the TLS files, or a proxy that terminates TLS',
    host => {
      expect(problemsOf({ HOST: host })).toEqual([
        expect.stringMatching(/^HOST is .*TLS_CERT_FILE.*KITH_BEHIND_PROXY=1/),
      ])
      expect(problemsOf({ HOST: host, KITH_BEHIND_PROXY: '0' })).toHaveLength(1)
      expect(loadConfig({ HOST: host, KITH_BEHIND_PROXY: '1' })).toMatchObject({ host, behindProxy: 1 })
      expect(loadConfig({ HOST: host, TLS_CERT_FILE: '/c', TLS_KEY_FILE: '/k' }).tls).toEqual({
        certFile: '/c',
        keyFile: '/k',
      })
    },
  )

  it('needs both TLS files', () => {
    for (const half of [{ TLS_CERT_FILE: '/c' }, { TLS_KEY_FILE: '/k' }])
      expect(problemsOf(half)).toEqual(['TLS_CERT_FILE and TLS_KEY_FILE must be set together'])
    expect(problemsOf({ HOST: '0.0.0.0', TLS_KEY_FILE: '/k' })).toHaveLength(2)
  })
})

it('lists all problems, one per line', () => {
  const problems = problemsOf({
    HOST: '0.0.0.0',
    PORT: 'eighty',
    LOG_LEVEL: 'loud',
    TLS_CERT_FILE: '/c',
    KITH_BEHIND_PROXY: 'yes',
    KITH_LIMIT_LINKS: '-1',
    KITH_POTR: '1',
    KITH_LIMIT_: '1',
    AUTH_SECRETS: 'x',
  })
  const names = problems.map(problem => problem.split(' ')[0]).sort()
  expect(names).toEqual([
    'AUTH_SECRETS',
    'KITH_BEHIND_PROXY',
    'KITH_LIMIT_',
    'KITH_LIMIT_LINKS',
    'KITH_POTR',
    'LOG_LEVEL',
    'PORT',
    'TLS_CERT_FILE',
  ])
})

it('lists the allowed values of a refused choice', () => {
  expect(problemsOf({ LOG_LEVEL: 'loud' })).toEqual([expect.stringContaining('debug')])
})

describe('traces', () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }
  const all = { sampler: 'parentbased_always_on', ratio: 1 }

  it.each([
    ['an endpoint', endpoint, all],
    ['an endpoint for traces', { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:4318/v1/traces' }, all],
    ['only the exporter', { OTEL_TRACES_EXPORTER: 'otlp' }, all],
    [
      'a sampler',
      { ...endpoint, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.25' },
      { sampler: 'traceidratio', ratio: 0.25 },
    ],
    ['no exporter', { ...endpoint, OTEL_TRACES_EXPORTER: 'none' }, undefined],
    ['OTEL_SDK_DISABLED', { ...endpoint, OTEL_SDK_DISABLED: 'true' }, undefined],
    ['a sampler but no endpoint', { OTEL_TRACES_SAMPLER: 'always_on' }, undefined],
  ])('are on or off with %s', (_, environment: Record<string, string>, traces) => {
    expect(loadConfig(environment).traces).toEqual(traces)
  })

  it.each([
    ['OTEL_TRACES_EXPORTER', 'console'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
    ['OTEL_TRACES_SAMPLER', 'sometimes'],
    ['OTEL_TRACES_SAMPLER_ARG', '2'],
  ])('are refused with %s=%s', (name, value) => {
    expect(problemsOf({ ...endpoint, [name]: value })).toEqual([expect.stringContaining(name)])
  })
})

describe('the role', () => {
  const DATABASE_URL = 'postgresql://kith@db/kith'

  it('reader needs a database of its own, which is a standby, and nothing that it would have to store in', () => {
    expect(problemsOf({ KITH_ROLE: 'reader', DATABASE_URL })).toEqual([])
    expect(problemsOf({ KITH_ROLE: 'reader' })).toEqual([expect.stringMatching(/^KITH_ROLE=reader needs DATABASE_URL/)])
    expect(problemsOf({ KITH_ROLE: 'reader', DATABASE_URL, DATABASE_READ_URL: DATABASE_URL })).toEqual([
      expect.stringMatching(/^DATABASE_READ_URL must not be set with KITH_ROLE=reader/),
    ])
    expect(problemsOf({ KITH_ROLE: 'reader', DATABASE_URL, KITH_RATE_STORE: 'postgresql' })).toEqual([
      expect.stringMatching(/^KITH_RATE_STORE must not be postgresql with KITH_ROLE=reader/),
    ])
    expect(problemsOf({ KITH_ROLE: 'standby' })).toEqual([expect.stringMatching(/^KITH_ROLE .*primary, reader/)])
  })

  it('reads from several hosts only if the URL says that a standby may be used', () => {
    const several = 'postgresql://kith@a,b/kith'
    const problem = (name: string) => [
      expect.stringMatching(`^${name} is read from a standby, so it needs target_session_attrs`),
    ]
    expect(problemsOf({ KITH_ROLE: 'reader', DATABASE_URL: several })).toEqual(problem('DATABASE_URL'))
    expect(problemsOf({ DATABASE_URL: several, DATABASE_READ_URL: several })).toEqual(problem('DATABASE_READ_URL'))
    const standby = `${several}?target_session_attrs=prefer-standby`
    expect(problemsOf({ DATABASE_URL: several, DATABASE_READ_URL: standby })).toEqual([])
  })

  it('primary takes a standby beside DATABASE_URL only', () => {
    expect(problemsOf({ DATABASE_URL, DATABASE_READ_URL: 'postgresql://kith@standby/kith' })).toEqual([])
    expect(problemsOf({ DATABASE_READ_URL: DATABASE_URL })).toEqual([
      expect.stringMatching(/^DATABASE_READ_URL needs DATABASE_URL/),
    ])
    expect(problemsOf({ DATABASE_URL, DATABASE_READ_URL: 'mysql://x' })).toEqual([
      expect.stringMatching(/^DATABASE_READ_URL must be a PostgreSQL URL/),
    ])
  })
})

describe('KITH_ARCHIVE', () => {
  const credentials = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'key' }

  it('is the absolute path of a folder, with its defaults', () => {
    expect(loadConfig({ KITH_ARCHIVE: '/mnt/archive' }).archive).toEqual({
      address: { folder: '/mnt/archive' },
      seconds: 60,
      days: 7,
    })
  })

  it('is a bucket with a prefix, at AWS or at an endpoint', () => {
    const bucket = {
      bucket: 'backups',
      region: 'us-east-1',
      credentials: { accessKeyId: 'id', secretAccessKey: 'key' },
    }
    expect(loadConfig({ KITH_ARCHIVE: 's3://backups', ...credentials }).archive?.address).toEqual({
      ...bucket,
      prefix: '',
      endpoint: 'https://s3.us-east-1.amazonaws.com',
    })
    const endpoint = { KITH_ARCHIVE_ENDPOINT: 'https://s3.example.org/', AWS_SESSION_TOKEN: 'token' }
    const { archive } = loadConfig({ KITH_ARCHIVE: 's3://backups/kith/one/', ...credentials, ...endpoint })
    expect(archive?.address).toEqual({
      ...bucket,
      credentials: { ...bucket.credentials, sessionToken: 'token' },
      prefix: 'kith/one/',
      endpoint: 'https://s3.example.org',
    })
  })

  it.each(['archive', './archive', 's3://', 's3://B', 's3://backups/../x', 's3://backups/a?b', 'https://backups'])(
    'is not %s',
    text =>
      expect(problemsOf({ KITH_ARCHIVE: text, ...credentials })).toEqual([expect.stringMatching(/^KITH_ARCHIVE /)]),
  )

  it('needs credentials for a bucket, which no problem quotes', () => {
    const problems = problemsOf({ KITH_ARCHIVE: 's3://backups', AWS_SECRET_ACCESS_KEY: 'hunter2' })
    expect(problems).toEqual([expect.stringContaining('AWS_ACCESS_KEY_ID')])
    expect(problems.join()).not.toContain('hunter2')
  })

  it('is refused with DATABASE_URL, and with an endpoint in plain text', () => {
    const problems = problemsOf({ KITH_ARCHIVE: '/mnt/archive', DATABASE_URL: 'postgresql://u@h/d' })
    expect(problems).toEqual([expect.stringContaining('docs/backups.md#archive-the-log')])
    const plain = { KITH_ARCHIVE: 's3://backups', KITH_ARCHIVE_ENDPOINT: 'http://store.example.org', ...credentials }
    expect(problemsOf(plain)).toEqual([expect.stringMatching(/^KITH_ARCHIVE_ENDPOINT must be an https URL/)])
  })
})
