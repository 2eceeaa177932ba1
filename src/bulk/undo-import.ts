import type { Statement } from '../db/db.ts'
import { writeArray } from '../entities/write/request-coalescing.ts'
import { dryRun } from '../entities/write/run.ts'
import { newWrite, type Outcome, requestOf, type Write } from '../entities/write-request.ts'
import {
  cachedDefinitions,
  type Definitions,
  isRelationship,
  ownerOf,
  peopleStackId,
} from '../organizations/definitions.ts'
import type { Call } from '../route/call.ts'
import type { HandlerResult } from '../route/result.ts'
import { requireScope } from '../route/scopes.ts'
import { refuse } from '../values/errors.ts'
import { recordIdOf } from '../values/formats.ts'
import type { Left, UndoRequest } from './imports-schema.ts'
import { advanceUndoSql, findImportSql, findLinkedByOthersSql, readChangesSinceSql, readImportedSql } from './sql.ts'
import { type LeftReason, type LoggedChange, planUndo, type UndoDefinitions, type UndoPlan } from './undo.ts'

const entitiesPerSet = 32
/** An entity with more changes since the start of the import is not undone. */
const maxChanges = 200
/**
 * A request ends after this time, or with this many fields left over, and the next request continues. A request may
 * take 10 seconds.
 */
const maxMs = 4_000
const maxLeft = 1_000
/** Memory reserved for the changes of a set. */
const reservedBytes = 8_388_608

export type FoundImport = {
  stack_id: number
  actor: string
  after_sequence: number
  last_sequence: number
  undo_sequence: number | null
}

/** A change with the current external identifier of its entity. */
type Changed = LoggedChange & { external_id: string | null }
type Imported = { stack_id: number; id: string }
type Undo = { deleted: number; restored: number; updated: number; left: Left[] }

export async function undoImport(call: Call<UndoRequest>): Promise<HandlerResult> {
  const { db, organization_id } = call.context
  const id = call.params.import_id!
  const [found] = await db.query<FoundImport>(findImportSql, [organization_id, id], call.signal)
  return found ? undo(call, id, found, advanceUndoSql) : refuse('not_found', 'There is no such import.')
}

/**
 * Undoes an import or a job, from its newest change on, in sets of ordinary writes. Each write is conditional on the
 * version that its plan is based on, so it never overwrites concurrent changes. The position is stored after each set,
 * so a repeated request continues where the last one ended. `advanceSql` stores the position of the undo, and the time
 * of its completion.
 */
export async function undo(
  call: Call<UndoRequest>,
  source_id: string,
  found: FoundImport,
  advanceSql: Statement,
): Promise<HandlerResult> {
  const { context, caller, body, memory, signal } = call
  const organization_id = caller.organization.id
  if (found.stack_id !== peopleStackId) requireScope(caller, 'records:write')
  const { dry_run = false } = body
  const start = (dry_run ? body.position : undefined) ?? found.undo_sequence ?? found.last_sequence
  const startedMs = performance.now()
  const done: Undo = { deleted: 0, restored: 0, updated: 0, left: [] }
  let position = start
  const release = await memory.take(reservedBytes)
  try {
    while (position > found.after_sequence && performance.now() - startedMs < maxMs && done.left.length < maxLeft) {
      position = await undoSet(call, [organization_id, source_id, found.actor, found.after_sequence], position, done)
      const undone_at = position > found.after_sequence ? null : new Date().toISOString()
      if (!dry_run) await context.db.query(advanceSql, [organization_id, source_id, position, undone_at], signal)
    }
  } finally {
    release()
  }
  return { status: 200, data: { dry_run, ...done, has_more: position > found.after_sequence, position } }
}

type ImportKey = [organization_id: number, id: string, actor: string, after_sequence: number]

type ImportedRow = { low: number; sequence: number | null; stack_id: number | null; entity_id: string | null }

/** Undoes the changes of the next entities, and returns the position after them. */
async function undoSet(call: Call<UndoRequest>, key: ImportKey, position: number, undo: Undo): Promise<number> {
  const { context, signal, body, limits } = call
  const rows = await context.db.query<ImportedRow>(readImportedSql, [...key, position, entitiesPerSet], signal)
  const imported = rows.flatMap(({ sequence, stack_id, entity_id }) =>
    sequence === null ? [] : [{ stack_id: stack_id!, id: entity_id! }],
  )
  for (const { stack_id, id } of imported) call.shown.add(stack_id, id)
  if (imported.length > 0) {
    const definitions = await cachedDefinitions(context, signal)
    const planned = await planSet(call, key, imported, definitions)
    const leave = (
      { stack_id, id }: Imported,
      changes: readonly Changed[],
      left: Omit<Left, 'id' | 'external_id' | 'owner'>,
    ) => {
      const shownId = stack_id === peopleStackId ? id : recordIdOf(id)
      undo.left.push({ id: shownId, owner: ownerOf(definitions, stack_id), external_id: nameOf(changes), ...left })
    }
    for (const { entity, changes, plan } of planned) {
      if ('reason' in plan) leave(entity, changes, { path: null, reason: plan.reason })
      for (const { path, reason } of plan.left) leave(entity, changes, { path, reason })
    }
    const written = planned.flatMap(each => {
      const write = writeOf(call, each)
      return write ? [{ ...each, write }] : []
    })
    const writes = written.map(({ write }) => write)
    const options = { limits, signal }
    const outcomes: Outcome[] = body.dry_run
      ? (await dryRun(context, writes, options)).outcomes
      : ((await writeArray(context, writes, options)) as Outcome[])
    for (const [index, { entity, changes }] of written.entries()) {
      const outcome = outcomes[index]!
      if ('error' in outcome) throw outcome.error
      if ('refusal' in outcome) {
        const { status, message, details } = outcome.refusal
        const reason: LeftReason = status === 412 || status === 404 ? 'changed_since' : 'refused'
        const text = [message, ...details.map(detail => `${detail.path} ${detail.message}`)].join(' ')
        leave(entity, changes, { path: null, reason, ...(reason === 'refused' && { message: text }) })
      } else {
        undo.deleted += Number(outcome.done.result === 'deleted')
        undo.restored += Number(outcome.done.result === 'restored')
        undo.updated += Number(outcome.done.result === 'updated')
        if (!body.dry_run) call.written.sequence = outcome.done.sequence
      }
    }
  }
  return imported.length < entitiesPerSet ? rows[0]!.low : rows.at(-1)!.sequence! - 1
}

type Planned = { entity: Imported; changes: readonly Changed[]; plan: UndoPlan }

async function planSet(
  { context: { db }, signal }: Call,
  key: ImportKey,
  imported: readonly Imported[],
  definitions: Definitions,
): Promise<Planned[]> {
  const ids = imported.map(({ id }) => id)
  const rows = await db.query<Changed & { entity_id: string }>(
    readChangesSinceSql,
    [...key, ids, maxChanges, imported.map(({ stack_id }) => stack_id)],
    signal,
  )
  const byEntity = Map.groupBy(rows, ({ entity_id }) => entity_id)
  const planned = imported.map((entity): Planned => {
    const changes = byEntity.get(entity.id) ?? []
    const isLong = changes.length >= maxChanges
    const plan = isLong
      ? { reason: 'changed_since' as const, left: [] }
      : planUndo(changes, definitionsOf(definitions, entity.stack_id))
    return { entity, changes, plan }
  })
  const deleted = planned.flatMap(({ entity, plan }) => ('deletes' in plan ? [entity.id] : []))
  if (deleted.length === 0) return planned
  const linked = await db.query<{ id: string }>(findLinkedByOthersSql, [...key, deleted], signal)
  const kept = new Set(linked.map(({ id }) => id))
  return planned.map(each =>
    kept.has(each.entity.id) ? { ...each, plan: { reason: 'linked_since', left: [] } } : each,
  )
}

function definitionsOf(definitions: Definitions, stack_id: number): UndoDefinitions {
  const declared = definitions.declared.get(stack_id)
  return {
    isRelationship: key => {
      const attribute = declared?.get(key)
      return attribute !== undefined && isRelationship(attribute)
    },
    relationship: attribute_id => {
      const attribute = definitions.attributeById.get(attribute_id)
      if (!attribute || declared?.get(attribute.key)?.id !== attribute_id) return undefined
      const isPerson = attribute.target_stack_id === peopleStackId
      return { key: attribute.key, reference: id => (isPerson ? { id } : { record_id: recordIdOf(id) }) }
    },
  }
}

function writeOf(call: Call, { entity: { stack_id, id }, changes, plan }: Planned): Write | undefined {
  const given = {
    stack_id,
    address: { id },
    if_match: [changes.at(-1)!.version],
    ...requestOf(call),
    references: 'strict' as const,
  }
  if ('deletes' in plan) return newWrite({ ...given, operation: 'delete', body: {} })
  // A deleted entity has no version. If it exists again, it stays as it is.
  if ('restores' in plan) return newWrite({ ...given, operation: 'restore', if_match: null, body: {} })
  if (!('body' in plan)) return undefined
  const { body, released } = plan
  if (Object.keys(body).length === 0 && released.length === 0) return undefined
  return newWrite({ ...given, operation: 'patch', body, released, bytes: 8_192 })
}

/** The current external identifier, or the last one in the changes. */
function nameOf(changes: readonly Changed[]): string | null {
  const [{ external_id = null } = {}] = changes
  const named = changes.findLast(({ before, after }) => before?.external_id != null || after?.external_id != null)
  return external_id ?? ((named?.after?.external_id ?? named?.before?.external_id ?? null) as string | null)
}
