import { EndpointGroup } from './endpoint-group.ts'
import { Listing, listingOfAll, type PageOptions, pageOf } from './listing.ts'
import type { Call, CallOptions } from './options.ts'
import type {
  AccessClient,
  AccessClientBody,
  AccessClientWithSecret,
  AccessEntry,
  Account,
  AccountBody,
  AccountPatch,
  ApiToken,
  ApiTokenBody,
  InvitedAccount,
  ListedToken,
  Role,
  RoleBody,
  RolePatch,
  SigningKey,
} from './wire.ts'

/** The page of a list of clients or tokens: 50 by default, at most 500. */
export type ApiClientListOptions = PageOptions & CallOptions

/** Selects entries of the access log. `entity` is the internal identifier of a person or a record. */
export type AccessLogOptions = PageOptions &
  CallOptions & { entity?: string; subject?: string; kind?: AccessEntry['kind']; from?: string; to?: string }

/**
 * The callers of the service: clients, tokens and their signing keys, accounts, roles, and the access log. The scopes
 * are `access:read` and `access:write`. A caller can grant only scopes that it has.
 */
export class AccessEndpoints extends EndpointGroup {
  readonly clients = new ApiClientEndpoints(this.transport)
  readonly tokens = new ApiTokenEndpoints(this.transport)
  readonly roles = new RoleEndpoints(this.transport)
  readonly accounts = new AccountEndpoints(this.transport)

  /**
   * Makes a token, which is shown only in this result. `expires_in` are seconds.
   *
   * ```ts
   * const { token, name } = await client.access.createToken({ scopes: ['people:read'], name: 'report', expires_in: 60 })
   * console.log(token.split('.').length, name) // 3 report
   * ```
   */
  createToken(body: ApiTokenBody, options?: CallOptions): Call<ApiToken> {
    return this.send('POST /v1/tokens', { body }, options)
  }

  /**
   * Lists the access log, newest first: reads and writes of people and records, and security events.
   *
   * ```ts
   * const { items } = await client.access.log({ kind: 'security', subject: 'nobody' }).page()
   * console.log(items.length) // 0
   * ```
   */
  log({ size, after, entity, subject, kind, from, to, ...options }: AccessLogOptions = {}): Listing<AccessEntry> {
    const filter = { entity, subject, kind, from, to, limit: size }
    const read = async (cursor?: string) => {
      const page = await this.send('GET /v1/access-log', { query: { ...filter, cursor } }, options)
      return { items: page.items, has_more: page.has_more, next: page.next_cursor }
    }
    return new Listing(read, after)
  }

  /**
   * Lists the public part of the keys that sign the service's tokens, newest first.
   *
   * ```ts
   * const [key] = await client.access.keys()
   * console.log(key?.state, key?.algorithm) // signs ES256
   * ```
   */
  async keys(options?: CallOptions): Promise<SigningKey[]> {
    return (await this.send('GET /v1/keys', {}, options)).items
  }
}

/** The clients of an organization: programs that fetch their own tokens. */
export class ApiClientEndpoints extends EndpointGroup {
  /**
   * Creates a client. Its secret is shown only in this result.
   *
   * ```ts
   * const { client_id, client_secret } = await client.access.clients.create({ name: 'Shop', scopes: ['people:read'] })
   * console.log(client_id.includes('.'), client_secret.length) // true 43
   * ```
   */
  create(body: AccessClientBody, options?: CallOptions): Call<AccessClientWithSecret> {
    return this.send('POST /v1/clients', { body }, options)
  }

  /**
   * Lists the clients, newest first, revoked ones included.
   *
   * ```ts
   * await client.access.clients.create({ name: 'Shop', scopes: ['people:read'] })
   * const { items, has_more } = await client.access.clients.list().page()
   * console.log(items.map(({ name }) => name).join(), has_more) // Shop false
   * ```
   */
  list({ size, after, ...options }: ApiClientListOptions = {}): Listing<AccessClient> {
    const read = (before?: string) => this.send('GET /v1/clients', { query: { before, limit: size } }, options)
    return new Listing(after => pageOf(read(after), ({ client_id }) => client_id), after)
  }

  /**
   * Reads a client.
   *
   * ```ts
   * const created = await client.access.clients.create({ name: 'Shop', scopes: ['people:read'] })
   * const { scopes, revoked_at } = await client.access.clients.get(created.client_id)
   * console.log(scopes.join(), revoked_at) // people:read null
   * ```
   */
  get(client_id: string, options?: CallOptions): Call<AccessClient> {
    return this.send('GET /v1/clients/{client_id}', { params: { client_id } }, options)
  }

  /**
   * Revokes a client. It gets no more tokens, and its tokens are refused within ten seconds.
   *
   * ```ts
   * const { client_id } = await client.access.clients.create({ name: 'Shop', scopes: ['people:read'] })
   * console.log(await client.access.clients.revoke(client_id)) // true
   * ```
   */
  revoke(client_id: string, options?: CallOptions): Call<true> {
    return this.send('DELETE /v1/clients/{client_id}', { params: { client_id } }, options)
  }
}

/** The tokens that callers and `kith token` made. Tokens that clients fetch end with the client and are not listed. */
class ApiTokenEndpoints extends EndpointGroup {
  /**
   * Lists the tokens, newest first, with their last use.
   *
   * ```ts
   * await client.access.createToken({ scopes: ['people:read'], name: 'report', expires_in: 60 })
   * const { items } = await client.access.tokens.list().page()
   * console.log(items[0]?.name, items[0]?.last_used_at) // report null
   * ```
   */
  list({ size, after, ...options }: ApiClientListOptions = {}): Listing<ListedToken> {
    const read = (before?: string) => this.send('GET /v1/tokens', { query: { before, limit: size } }, options)
    return new Listing(after => pageOf(read(after), ({ jti }) => jti), after)
  }

  /**
   * Revokes a token and the tokens that were made with it. They are refused within ten seconds.
   *
   * ```ts
   * const { jti } = await client.access.createToken({ scopes: ['people:read'], name: 'guest', expires_in: 60 })
   * console.log(await client.access.tokens.revoke(jti)) // true
   * ```
   */
  revoke(jti: string, options?: CallOptions): Call<true> {
    return this.send('DELETE /v1/tokens/{jti}', { params: { jti } }, options)
  }
}

/**
 * The roles of an organization. A role limits what clients, tokens and sessions may do, and which fields they may read
 * and write.
 */
export class RoleEndpoints extends EndpointGroup {
  /**
   * Creates a role.
   *
   * ```ts
   * const fields = { people: { read: ['first_name', 'email'], write: ['email'] } }
   * const role = await client.access.roles.create({ key: 'desk', scopes: ['people:read', 'people:write'], fields })
   * console.log(role.state, role.fields?.people?.write.join()) // active email
   * ```
   */
  create(body: RoleBody, options?: CallOptions): Call<Role> {
    return this.send('POST /v1/roles', { body }, options)
  }

  /**
   * Lists the roles.
   *
   * ```ts
   * await client.access.roles.create({ key: 'reader', scopes: ['people:read'] })
   * console.log((await client.access.roles.list()).map(({ key }) => key).join()) // reader
   * ```
   */
  async list(options?: CallOptions): Promise<Role[]> {
    return (await this.send('GET /v1/roles', {}, options)).items
  }

  /**
   * Reads a role.
   *
   * ```ts
   * await client.access.roles.create({ key: 'reader', scopes: ['people:read'] })
   * console.log((await client.access.roles.get('reader')).fields) // null
   * ```
   */
  get(role_key: string, options?: CallOptions): Call<Role> {
    return this.send('GET /v1/roles/{role_key}', { params: { role_key } }, options)
  }

  /**
   * Changes a role. The change applies to the next request of each caller with the role.
   *
   * ```ts
   * await client.access.roles.create({ key: 'reader', scopes: ['people:read'] })
   * console.log((await client.access.roles.patch('reader', { state: 'archived' })).state) // archived
   * ```
   */
  patch(role_key: string, body: RolePatch, options?: CallOptions): Call<Role> {
    return this.send('PATCH /v1/roles/{role_key}', { params: { role_key }, body }, options)
  }
}

/**
 * The accounts that sign in to the console with a password. A caller can give only a role that has no more rights than
 * the caller.
 */
class AccountEndpoints extends EndpointGroup {
  /**
   * Creates an account. Only this result has the link of its invitation, as a path below the address of the service.
   *
   * ```ts
   * const { state, invitation_path } = await client.access.accounts.create({ name: 'Ada Lovelace', role: null })
   * console.log(state, invitation_path.split('#')[0]) // invited /console/invitation
   * ```
   */
  create(body: AccountBody, options?: CallOptions): Call<InvitedAccount> {
    return this.send('POST /v1/accounts', { body }, options)
  }

  /**
   * Lists the accounts, newest first.
   *
   * ```ts
   * await client.access.accounts.create({ name: 'Grace Hopper', role: null })
   * const [newest] = await client.access.accounts.list().all()
   * console.log(newest?.name, newest?.last_sign_in_at) // Grace Hopper null
   * ```
   */
  list(options?: CallOptions): Listing<Account> {
    return listingOfAll(() => this.send('GET /v1/accounts', {}, options))
  }

  /**
   * Changes the role of an account, disables or enables it. If it gets another role or is disabled, its sessions end
   * within ten seconds.
   *
   * ```ts
   * const { id } = await client.access.accounts.create({ name: 'Mary', role: null })
   * const { state } = await client.access.accounts.update(id, { state: 'disabled' })
   * console.log(state) // disabled
   * ```
   */
  update(id: string, body: AccountPatch, options?: CallOptions): Call<Account> {
    return this.send('PATCH /v1/accounts/{account_id}', { params: { account_id: id }, body }, options)
  }

  /**
   * Removes an account. Its sessions end within ten seconds.
   *
   * ```ts
   * const { id } = await client.access.accounts.create({ name: 'Jean', role: null })
   * console.log(await client.access.accounts.remove(id)) // true
   * ```
   */
  remove(id: string, options?: CallOptions): Call<true> {
    return this.send('DELETE /v1/accounts/{account_id}', { params: { account_id: id } }, options)
  }

  /**
   * Makes a new invitation, for a lost link or a forgotten password. The password stays valid until the invitation is
   * accepted.
   *
   * ```ts
   * const { id } = await client.access.accounts.create({ name: 'Joan', role: null })
   * const { invitation_path } = await client.access.accounts.invite(id)
   * console.log(invitation_path.includes('#code=')) // true
   * ```
   */
  invite(id: string, options?: CallOptions): Call<InvitedAccount> {
    return this.send('POST /v1/accounts/{account_id}/invitation', { params: { account_id: id } }, options)
  }
}
