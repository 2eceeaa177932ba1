import { Resolver } from 'node:dns/promises'
import ipaddr from 'ipaddr.js'

/** The address ranges that webhooks may reach although they are not public (KITH_WEBHOOK_ALLOW). */
export type AllowedRanges = readonly [ipaddr.IPv4 | ipaddr.IPv6, number][]

export const parseRanges = (cidrs: readonly string[]): AllowedRanges => cidrs.map(cidr => ipaddr.parseCIDR(cidr))

/** Addresses in a public range that lead into a cloud: Azure's metadata and DNS. */
const metadataAddresses = ['168.63.129.16']

/**
 * Global unicast, the only IPv6 range that IANA assigns to the internet. Other addresses are unreachable or carry an
 * IPv4 address.
 */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

/** Whether an address is on the internet, in a range without a special purpose. */
function isPublic(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  if (address instanceof ipaddr.IPv6 && !address.match(globalUnicast)) return false
  return address.range() === 'unicast' && !metadataAddresses.includes(address.toString())
}

/**
 * Whether a webhook may reach an address, because it is public or in an allowed range. An IPv4-mapped address counts as
 * IPv4.
 */
export function isReachable(text: string, allowed: AllowedRanges): boolean {
  if (!ipaddr.isValid(text)) return false
  const address = ipaddr.process(text)
  return (
    isPublic(address) || allowed.some(([range, bits]) => range.kind() === address.kind() && address.match(range, bits))
  )
}

/** Whether the host of a URL is a name or address of this machine. */
function isLoopback(host: string): boolean {
  if (isLocalName(host)) return true
  return ipaddr.isValid(host) && ipaddr.process(host).range() === 'loopback'
}

const isLocalName = (host: string) => host === 'localhost' || host.endsWith('.localhost')
const localAddresses = ['127.0.0.1', '::1']

const hostOf = ({ hostname }: URL) => hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')

const refusedAddress = 'is an address that webhooks may not reach (KITH_WEBHOOK_ALLOW)'

/** Returns the problem of a webhook's URL, before its name is resolved. Undefined for a valid URL. */
export function urlProblem(text: string, allowed: AllowedRanges): string | undefined {
  const url = URL.parse(text)
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) return 'must be an https URL'
  if (url.username !== '' || url.password !== '') return 'must have no user and no password'
  if (text.includes('#')) return 'must have no fragment'
  const host = hostOf(url)
  const isOpen = isLocalName(host)
    ? localAddresses.some(address => isReachable(address, allowed))
    : !ipaddr.isValid(host) || isReachable(host, allowed)
  if (url.protocol === 'http:' && !(isLoopback(host) && isOpen))
    return 'must be an https URL: http is allowed only to a loopback address that KITH_WEBHOOK_ALLOW permits'
  return isOpen ? undefined : refusedAddress
}

/**
 * A name resolves to an address that webhooks may not reach. The message does not contain the address, because it may
 * be internal.
 */
export class AddressRefused extends Error {
  readonly code = 'ADDRESS_REFUSED'
  constructor() {
    super('The host resolves to an address that webhooks may not reach.')
  }
}

/** Resolves a host name to its addresses. Rejects if there are none. */
export type Resolve = (host: string) => Promise<string[]>

/** A name that never exists (RFC 6761, 6.4). A query for it would reveal a local name to the name server. */
const isReservedName = (host: string) => /(^|\.)invalid\.?$/i.test(host)

/**
 * Resolves names by DNS. Node's own look-up would occupy a thread for each name whose server does not answer, and all
 * other look-ups would wait.
 */
export function createResolve(): Resolve {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 })
  return async host => {
    if (isReservedName(host)) throw Object.assign(new Error(`${host} does not exist`), { code: 'ENOTFOUND' })
    const found = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
    const addresses = found.flatMap(result => (result.status === 'fulfilled' ? result.value : []))
    if (addresses.length === 0) throw (found[0] as PromiseRejectedResult).reason
    return addresses
  }
}

/** Resolves a host to its addresses. Throws {@link AddressRefused} unless a webhook may reach all of them. */
export async function resolveReachable(host: string, allowed: AllowedRanges, resolve: Resolve): Promise<string[]> {
  if (isLocalName(host)) {
    const reachable = localAddresses.filter(address => isReachable(address, allowed))
    if (reachable.length === 0) throw new AddressRefused()
    return reachable
  }
  const addresses = ipaddr.isValid(host) ? [host] : await resolve(host)
  if (!addresses.every(address => isReachable(address, allowed))) throw new AddressRefused()
  return addresses
}
