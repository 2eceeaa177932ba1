import { canonicalJson } from '../../client/src/ledger-text.ts'
import { Type } from '../values/json-schema.ts'
import type { Found } from './answer.ts'
import { type Api, ApiRefusal, type ApiRequest } from './api.ts'
import type { Confirmations } from './confirmations.ts'
import { type Arguments, at, atEntity, externalId, object, owner, type Tool, text } from './tool.ts'

const confirm = Type.Optional(
  text('What the dry run gave to confirm it. Without it nothing is stored. Ask the person before.'),
)

const steps =
  'The first call stores nothing: it returns what would change, and a confirmation. Show that to the person. Call again with the same ' +
  'arguments and `confirm` to store it. A confirmation is for this change only, and ends after 10 minutes.'

export const writingTools: Tool[] = [
  {
    name: 'patch',
    description: `Changes fields of one person or record. ${steps}`,
    input: {
      owner,
      external_id: externalId,
      changes: object(
        'Only the fields to change: {"first_name": "Ada", "attribute_values": {"city": "Rome"}}. null clears a field.',
      ),
      confirm,
    },
    isWriting: true,
    run: async (api, given, confirmations) => {
      const write: ApiRequest = { method: 'PATCH', ...atEntity(given), body: given.changes }
      const version = given.confirm === undefined ? await readVersion(api, given) : undefined
      return change(api, confirmations, { tool: 'patch', write, version, confirm: given.confirm })
    },
  },
  {
    name: 'create',
    description: `Creates one person or record. ${steps}`,
    input: {
      owner,
      values: object(
        'The new entity: {"external_id": "ada", "first_name": "Ada", "attribute_values": {"city": "Rome"}}.',
      ),
      confirm,
    },
    isWriting: true,
    run: (api, { owner, values, confirm }, confirmations) =>
      change(api, confirmations, {
        tool: 'create',
        write: { method: 'POST', ...at(owner), body: values },
        version: 0,
        confirm,
      }),
  },
]

/** Reads the version of an entity. Undefined if it does not exist, and then the dry run is refused. */
async function readVersion(api: Api, { owner, external_id }: Arguments): Promise<number | undefined> {
  const body = { external_ids: [external_id], fields: ['version'] }
  const { items } = (await api({ method: 'POST', ...at(owner, '/get'), body })) as {
    items: ({ version: number } | null)[]
  }
  return items[0]?.version
}

type Change = { tool: string; write: ApiRequest; version: number | undefined; confirm: string | undefined }

/**
 * Runs a write as a dry run or, with a confirmation of the same write, stores it. The version in the confirmation makes
 * the write fail if the entity has changed since the dry run. The key in it stores the write once, however often the
 * tool is called.
 */
async function change(
  api: Api,
  confirmations: Confirmations,
  { tool, write, version, confirm }: Change,
): Promise<Found> {
  const { method, path, params, body } = write
  const what = { method, path, params, body }
  if (confirm === undefined) {
    const preview = await api({ ...write, dryRun: true, ...(version && { ifMatch: version }) })
    const data = preview as Record<string, unknown>
    if (data.result === 'unchanged') return { data, note: 'This would change nothing, so there is nothing to confirm.' }
    const token = confirmations.issue(what, version ?? 0)
    return {
      data,
      note: `Nothing is stored yet. To store this, call ${tool} again with the same arguments and "confirm": "${token}".`,
    }
  }
  const confirmed = confirmations.check(what, confirm)
  if (!confirmed) throw unconfirmed
  const stored = await api({
    ...write,
    // A model may repeat the call with its members in another order, but the key is bound to the bytes of the body.
    body: JSON.parse(canonicalJson(body)),
    idempotencyKey: confirmed.key,
    ...(confirmed.version > 0 && { ifMatch: confirmed.version }),
  })
  const { external_id } = body as { external_id?: string }
  const renamed = method === 'PATCH' && external_id !== undefined && { external_id }
  return { data: { stored: true, ...params, ...renamed, ...(method === 'POST' && identifiersOf(stored)) } }
}

const identifiersOf = (entity: unknown) => {
  const { external_id, id, record_id } = entity as Record<string, unknown>
  return { external_id, id: id ?? record_id }
}

const unconfirmed = new ApiRefusal({
  status: 400,
  error: 'invalid_parameter',
  message: 'Nothing was stored.',
  details: [
    {
      path: '/confirm',
      message:
        'is for another change or another caller, or is older than 10 minutes. Call again without confirm for a new dry run, and give its confirmation exactly',
    },
  ],
})
