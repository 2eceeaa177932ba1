import type { Reading } from '../db/context.ts'
import { buildDefinitions, type Definitions } from './definitions.ts'
import { readDefinitionChangesSql } from './definitions-sql.ts'

export type LoggedDefinitionChange = {
  sequence: number
  subject: 'stack' | 'attribute' | 'consent_type'
  definition_id: number
  operation: 'create' | 'update'
  before: Record<string, unknown> | null
}

/** Reads the changes of definitions after the change with this number, the last one first. */
export function readDefinitionChanges(
  { db: reader, organization_id }: Reading,
  sequence: number,
): Promise<LoggedDefinitionChange[]> {
  return reader.query<LoggedDefinitionChange>(readDefinitionChangesSql, [organization_id, sequence])
}

/**
 * The definitions after the change with this number. `later` are all changes since, the last one first. They were read
 * after `definitions`. Undoing a change that `definitions` do not contain yet has no effect.
 */
export function definitionsAfter(
  definitions: Definitions,
  sequence: number,
  later: readonly LoggedDefinitionChange[],
): Definitions {
  const undone = later.filter(change => change.sequence > sequence)
  if (undone.length === 0) return definitions
  const { organization_id, version, stacks, attributes, consent_types, time_zone, default_country } = definitions
  const ofSubject = (subject: LoggedDefinitionChange['subject']) => undone.filter(change => change.subject === subject)
  return buildDefinitions(organization_id, {
    version,
    stacks: undo(stacks, ofSubject('stack')),
    attributes: undo(attributes, ofSubject('attribute')),
    consent_types: undo(consent_types, ofSubject('consent_type')),
    time_zone,
    default_country,
  })
}

function undo<D extends { id: number }>(current: readonly D[], changes: readonly LoggedDefinitionChange[]): D[] {
  const byId = new Map(current.map(definition => [definition.id, definition]))
  for (const { definition_id, operation, before } of changes) {
    const definition = byId.get(definition_id)
    if (operation === 'create') byId.delete(definition_id)
    else if (definition) byId.set(definition_id, { ...definition, ...before })
  }
  return [...byId.values()]
}
