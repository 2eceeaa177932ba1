import { createHash } from 'node:crypto'
import type { Static } from 'typebox'
import { cachedDefinitions, stackIdOf } from '../organizations/definitions.ts'
import type { Call } from '../route/call.ts'
import type { HandlerResult } from '../route/result.ts'
import { refuse, throwValueRefusal } from '../values/errors.ts'
import { withOwner } from './imports.ts'
import type { MappingBody, mapping } from './imports-schema.ts'
import { forgetMappingSql, forgetOldMappingsSql, listMappingsSql, saveMappingSql } from './sql.ts'

type MappingRow = Omit<Static<typeof mapping>, 'owner'> & { stack_id: number }

export async function listMappings({ context, signal }: Call): Promise<HandlerResult> {
  const rows = await context.db.query<MappingRow>(listMappingsSql, [context.organization_id], signal)
  const definitions = await cachedDefinitions(context, signal)
  return { status: 200, data: { items: rows.map(row => withOwner(row, definitions)) } }
}

/** Saves the fields that the columns of a file were mapped to. Only the newest mappings of an organization are kept. */
export async function saveMapping({ context, caller, body, signal }: Call<MappingBody>): Promise<HandlerResult> {
  const { owner, header, fields } = body
  if (header.length !== fields.length)
    refuse('invalid_parameter', `The header has ${header.length} columns, and there are ${fields.length} fields.`)
  const definitions = await cachedDefinitions(context, signal)
  const stack_id =
    stackIdOf(definitions, owner) ??
    throwValueRefusal('/owner', 'must be `people` or the key of a stack', 'The mapping has no owner.')
  const id = createHash('sha256')
    .update(JSON.stringify([stack_id, header]))
    .digest('hex')
  const row = { id, stack_id, header, fields, actor: caller.subject, saved_at: new Date().toISOString() }
  await context.db.query(saveMappingSql, [context.organization_id, ...Object.values(row)], signal)
  await context.db.query(forgetOldMappingsSql, [context.organization_id], signal)
  return { status: 200, data: withOwner(row, definitions) }
}

export async function forgetMapping({ context, params, signal }: Call): Promise<HandlerResult> {
  const gone = await context.db.query(forgetMappingSql, [context.organization_id, params.mapping_id!], signal)
  if (gone.length === 0) refuse('not_found', 'There is no such mapping.')
  return { status: 200, data: true }
}
