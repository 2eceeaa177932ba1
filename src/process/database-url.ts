/** The address of a server. `host` is a name, an address, or the folder of a socket. */
export type ServerAddress = { host: string; port: number }

/** The values of libpq's `target_session_attrs`, which select the servers of a URL to use. */
export const sessionAttributes = ['any', 'read-write', 'read-only', 'primary', 'standby', 'prefer-standby'] as const
export type SessionAttributes = (typeof sessionAttributes)[number]

/**
 * The servers of a URL: one URL for each, in order and in the driver's form, and the kind of server to use. `options`
 * are the settings of a session, as `-c name=value`. The URLs do not contain them.
 */
export type DatabaseUrl = { urls: readonly string[]; wants: SessionAttributes; options: readonly string[] }

/** The list of hosts is invalid. The message continues "DATABASE_URL …", and contains no part of the URL. */
export class DatabaseUrlError extends Error {}

const portRule = 'must have ports from 1 to 65535'

/**
 * Splits a URL as libpq does: commas separate the hosts, before the path or in `host` and `port` of the query. The
 * default of `target_session_attrs` is `any` for one host, as in libpq, and `read-write` for several. A URL of one host
 * is not checked further, because the driver parses it. Throws {@link DatabaseUrlError}.
 */
export function parseDatabaseUrl(text: string): DatabaseUrl {
  const parts = /^(postgres(?:ql)?:\/\/)([^/?#]*)([^?#]*)(?:\?([^#]*))?/.exec(text)
  if (!parts) return { urls: [text], wants: 'any', options: [] }
  const [, scheme = '', authority = '', path = '', query = ''] = parts
  const parameters = new URLSearchParams(query)
  const wants = readWants(parameters)
  const options = parameters.getAll('options')
  const loginEnd = authority.lastIndexOf('@') + 1
  const login = authority.slice(0, loginEnd)
  const listed = authority.slice(loginEnd).split(',')
  const named = parameters.getAll('host').at(-1)?.split(',')
  if (listed.length === 1 && (named?.length ?? 1) === 1) {
    const url = `${scheme}${authority}${path}${withoutParameters(query, ownParameters)}`
    return { urls: [url], wants: wants ?? 'any', options }
  }
  const hosts = listed.map(splitPort)
  const names = named ?? hosts.map(({ host }) => host)
  if (names.some(name => name === '')) throw new DatabaseUrlError('must name a host at each place of its list')
  const ports = portsFor(names, parameters.getAll('port').at(-1)?.split(',') ?? hosts.map(({ port }) => port))
  const rest = withoutParameters(query, [...ownParameters, 'host', 'port'])
  const urls = names.map((name, index) => {
    const port = ports[index]!
    if (!named) return `${scheme}${login}${name}${port && `:${port}`}${path}${rest}`
    const address = new URLSearchParams({ host: name, ...(port && { port }) })
    return `${scheme}${login}localhost${path}${rest ? `${rest}&` : '?'}${address}`
  })
  return { urls, wants: wants ?? (urls.length > 1 ? 'read-write' : 'any'), options }
}

function readWants(parameters: URLSearchParams): SessionAttributes | undefined {
  const given = parameters.getAll('target_session_attrs').at(-1)
  const wants = sessionAttributes.find(each => each === given)
  if (given !== undefined && wants === undefined)
    throw new DatabaseUrlError(`must have as target_session_attrs one of ${sessionAttributes.join(', ')}`)
  return wants
}

/** Splits `name`, `name:port`, `[address]` or `[address]:port`. The port is '' if it is absent. */
function splitPort(text: string): { host: string; port: string } {
  const [, host, port = ''] = /^(\[[^\]]*\]|[^:]*)(?::([^:]*))?$/.exec(text) ?? []
  if (host === undefined) throw new DatabaseUrlError('must put an IPv6 address of its list in brackets')
  return { host, port }
}

/** Returns a port for each host. `ports` has one for all, or one for each. '' is the default port. */
function portsFor(hosts: readonly string[], ports: readonly string[]): string[] {
  if (ports.length !== 1 && ports.length !== hosts.length)
    throw new DatabaseUrlError(
      `must have one port, or one for each host: it has ${hosts.length} hosts and ${ports.length} ports`,
    )
  for (const port of ports)
    if (port !== '' && !(/^\d{1,5}$/.test(port) && Number(port) >= 1 && Number(port) <= 65_535))
      throw new DatabaseUrlError(portRule)
  return hosts.map((_, index) => ports[ports.length === 1 ? 0 : index]!)
}

/** The parameters that the driver does not get. It would replace kith's own `options`. */
const ownParameters = ['target_session_attrs', 'options']

/** A query, with its `?`, without some parameters. The other parameters stay as written. */
function withoutParameters(query: string, removed: readonly string[]): string {
  const isKept = (parameter: string) =>
    parameter !== '' && !removed.some(name => new URLSearchParams(parameter).has(name))
  const kept = query.split('&').filter(isKept)
  return kept.length > 0 ? `?${kept.join('&')}` : ''
}
