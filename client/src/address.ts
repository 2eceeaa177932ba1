/**
 * Addresses an entity by its external identifier, or in an object by its internal one. The internal identifier also
 * leads to a deleted entity, if the endpoint can read one.
 *
 * ```ts
 * const { id } = await client.people.get('ada')
 * await client.people.delete({ id })
 * const { items } = await client.people.history({ id }).page()
 * console.log(items.map(change => change.operation).join()) // delete,create
 * ```
 */
export type EntityAddress = string | { id: string }

/**
 * Returns the internal identifier of an entity: the `id` of a person, the `record_id` of a record.
 *
 * ```ts
 * import { idOf } from '@kith/client'
 *
 * const order = await client.stack('orders').get('o-1')
 * console.log((await client.stack('orders').get({ id: idOf(order) })).external_id) // o-1
 * ```
 */
export const idOf = (entity: { id: string } | { record_id: string }): string =>
  'record_id' in entity ? entity.record_id : entity.id

/** The path of an entity below its collection: the template of the path, and its parameters. */
export type Address =
  | { readonly at: '/{external_id}'; readonly params: { readonly external_id: string } }
  | { readonly at: '/internal/{uuid}'; readonly params: { readonly uuid: string; readonly record_id: string } }

export const addressOf = (address: EntityAddress): Address =>
  typeof address === 'string'
    ? { at: '/{external_id}', params: { external_id: address } }
    : { at: '/internal/{uuid}', params: { uuid: address.id, record_id: address.id } }
