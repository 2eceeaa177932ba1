import { userInfo } from 'node:os'
import type { Database } from '../db/db.ts'
import { defaultOrganizationKey } from '../organizations/organizations.ts'
import type { Config } from '../process/config.ts'
import { isLoopbackHost } from '../process/config.ts'
import { scopes } from '../route/scopes.ts'
import { isActorName } from '../values/actor-names.ts'
import { createSignInCode } from './sessions.ts'

type LinkRequest = { base: string; organizationKey: string; name: string; scope: string }

/**
 * Creates a link that signs in to the console, once and within 60 seconds. The code is in the fragment, which browsers
 * do not send, so no request log contains it. Throws like `createSignInCode`.
 */
export async function createSignInLink(db: Database, { base, ...identity }: LinkRequest): Promise<string> {
  return `${base}/console/sign-in#code=${await createSignInCode(db, identity)}`
}

/** The user that runs this process. In a container it may have no name, or the name `kith`. */
export function operatorName(): string {
  try {
    const { username } = userInfo()
    return isActorName(username) ? username : 'operator'
  } catch {
    return 'operator'
  }
}

/**
 * The link that a start prints. Undefined for a process that only reads, and for a service that other machines reach,
 * because its log may be read elsewhere.
 */
export async function createStartLink(
  db: Database,
  address: string,
  { host, behindProxy, publicUrl, role }: Config,
): Promise<string | undefined> {
  const isLocal = isLoopbackHost(host) && behindProxy === 0 && publicUrl === undefined
  if (!isLocal || role === 'reader') return undefined
  return createSignInLink(db, {
    base: address,
    organizationKey: defaultOrganizationKey,
    name: operatorName(),
    scope: scopes.join(' '),
  })
}
