import { EndpointGroup } from './endpoint-group.ts'
import { type Listing, listingOfAll } from './listing.ts'
import type { Call, CallOptions } from './options.ts'
import type { Account, AccountBody, AccountPatch, InvitedAccount } from './wire.ts'

/** The people who sign in to the console with a password. A caller can give only a role that has no more than itself. */
export class AccountEndpoints extends EndpointGroup {
  /**
   * Creates an account. The link of its invitation is shown only in this result: put the address of the service before it.
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
   * Changes the role of an account, disables or enables it. With another role, or disabled, its sessions end within ten seconds.
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
   * Makes a new invitation, for a lost link or a forgotten password. The password stays valid until somebody accepts it.
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
