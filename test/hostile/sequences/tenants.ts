import type { Service } from '../../support/service.ts'

/** Creates the organization whose definitions every organization of a sequence copies. `score` is attribute 1. Returns its id. */
export async function makeTemplate(service: Service): Promise<number> {
  const { id, send } = await service.organization()
  const make = async (path: string, body: object) => {
    const made = await send('POST', `/v1/schema/${path}`, body)
    if (made.status !== 201) throw new Error(JSON.stringify(made.body))
  }
  await make('stacks', { key: 'orders', kind: 'item' })
  await make('stacks', { key: 'visits', kind: 'event' })
  await make('attributes', { key: 'score', owner: 'people', type: 'number', indexed: true })
  await make('attributes', { key: 'referrer', owner: 'people', type: 'person' })
  await make('attributes', { key: 'friends', owner: 'people', type: 'person', cardinality: 'many' })
  await make('attributes', {
    key: 'bought',
    owner: 'people',
    type: 'stack',
    target_stack: 'orders',
    cardinality: 'many',
  })
  await make('attributes', { key: 'buyer', owner: 'orders', type: 'person' })
  await make('attributes', { key: 'visitor', owner: 'visits', type: 'person' })
  await make('consent-types', { key: 'surveys', channels: [{ channel: 'email' }] })
  await make('consent-types', { key: 'legal', mandatory: true, channels: [{ channel: 'email' }, { channel: 'sms' }] })
  await make('consent-types', { key: 'calls', default_state: true, channels: [{ channel: 'sms' }] })
  return id
}

const copiedColumns: Record<string, string> = {
  stacks: 'id, key, name, kind, created_at, updated_at, version',
  attributes:
    'id, owner_stack_id, key, name, description, type, target_stack_id, cardinality, indexed, state, created_at, updated_at, version, index_id, index_ready',
  consent_types:
    'id, key, name, description, state, mandatory, default_state, channels, created_at, updated_at, version',
}

let copies = 0

/** Creates an empty organization with the template's definitions, and a token for it. */
export async function copyTemplate(service: Service, templateId: number): Promise<{ id: number; token: string }> {
  const key = `copy_${process.pid}_${++copies}`
  const parts = Object.entries(copiedColumns).map(
    ([table, columns]) =>
      `${table}_made as (insert into ${table} (organization_id, ${columns}) select made.id, ${columns
        .split(', ')
        .map(column => `t.${column}`)
        .join(', ')} from ${table} t, made where t.organization_id = $2)`,
  )
  const [made] = await service.sql<{ id: number }>(
    `with made as (insert into organizations (key) values ($1) returning id), ${parts.join(', ')},
     headed as (insert into change_heads (organization_id, sequence, schema_version)
       select made.id, 0, h.schema_version from change_heads h, made where h.organization_id = $2)
     select id from made`,
    [key, templateId],
  )
  return { id: made!.id, token: await service.tokenFor(key) }
}
