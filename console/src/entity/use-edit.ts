import { isKithError } from '@kith/client'
import { useState } from 'react'
import { type Entity, entitiesOf } from './entities.ts'
import { isEqual } from './equal.ts'
import { type Draft, type DraftFault, draftOf, type Field, parseDraft, patchOf, storedValue } from './fields.ts'

/** A field that somebody else changed while it was edited here. */
export type Conflict = { field: Field; before: unknown; mine: unknown; theirs: unknown; choice?: 'mine' | 'theirs' }

type State = {
  /** The entity as it was read when the edit began, or at the last conflict. */
  base: Entity
  /** The drafts of the fields that were touched, by path. */
  drafts: ReadonlyMap<string, Draft>
  faults: ReadonlyMap<string, DraftFault>
  conflicts: readonly Conflict[]
  error: unknown
  isSaving: boolean
}

export type Edit = {
  isEditing: boolean
  state: State | undefined
  isDirty: boolean
  begin(): void
  cancel(): void
  draft(field: Field): Draft
  set(field: Field, draft: Draft): void
  choose(path: string, choice: 'mine' | 'theirs'): void
  save(): Promise<void>
  /** The messages of the service about the field. */
  refusalsOf(field: Field): string | undefined
}

type EditOptions = {
  owner: string
  id: string
  entity: Entity
  fields: readonly Field[]
  onSaved: (entity: Entity) => void
}

/** Writes of others that touch other fields are no conflict: the write is repeated over them, this often. */
const maxRepeats = 3

/**
 * Edits fields of a person or record. The write names the version that was read. If somebody else wrote meanwhile, fields that only
 * one of the two changed are merged, and the person chooses for the others.
 */
export function useEdit({ owner, id, entity, fields, onSaved }: EditOptions): Edit {
  const [state, setState] = useState<State>()
  const change = (more: Partial<State>) => setState(before => before && { ...before, ...more })

  const finish = (saved?: Entity) => {
    setState(undefined)
    if (saved) onSaved(saved)
  }
  const send = async (base: Entity, changes: ReadonlyMap<Field, unknown>, repeats = 0): Promise<void> => {
    if (changes.size === 0) return finish(base === entity ? undefined : base)
    change({ isSaving: true, error: undefined })
    try {
      const options = { ifMatch: base.version, representation: true } as const
      finish(await entitiesOf(owner).patchById(id, patchOf(changes), options))
    } catch (error) {
      if (!isKithError(error) || error.status !== 412 || repeats >= maxRepeats)
        return change({ error, isSaving: false })
      await merge(base, changes, repeats)
    }
  }
  const merge = async (base: Entity, changes: ReadonlyMap<Field, unknown>, repeats: number) => {
    try {
      const theirs = await entitiesOf(owner).getById(id)
      const open = [...changes].filter(([field, mine]) => !isEqual(storedValue(field, theirs), mine))
      const conflicts = open
        .filter(([field]) => !isEqual(storedValue(field, theirs), storedValue(field, base)))
        .map(([field, mine]) => ({ field, before: storedValue(field, base), mine, theirs: storedValue(field, theirs) }))
      if (conflicts.length === 0) return await send(theirs, new Map(open), repeats + 1)
      // A draft that equals what was read is no change, so it must not overwrite what others wrote.
      const kept = new Set(open.map(([{ path }]) => path))
      setState(
        before =>
          before && {
            ...before,
            base: theirs,
            conflicts,
            drafts: new Map([...before.drafts].filter(([path]) => kept.has(path))),
            isSaving: false,
          },
      )
    } catch (error) {
      change({ error, isSaving: false })
    }
  }
  const save = async () => {
    if (!state || state.conflicts.some(({ choice }) => choice === undefined)) return
    const { changes, faults } = changesOf(state, fields)
    change({ faults })
    if (faults.size === 0) await send(state.base, changes)
  }
  const refusals = isKithError(state?.error) ? state.error.details : []
  return {
    isEditing: state !== undefined,
    state,
    isDirty: state !== undefined && state.drafts.size > 0,
    begin: () =>
      setState({
        base: entity,
        drafts: new Map(),
        faults: new Map(),
        conflicts: [],
        error: undefined,
        isSaving: false,
      }),
    cancel: () => setState(undefined),
    draft: field => state?.drafts.get(field.path) ?? draftOf(field, storedValue(field, state?.base ?? entity)),
    set: (field, draft) =>
      setState(before => before && { ...before, drafts: new Map(before.drafts).set(field.path, draft) }),
    choose: (path, choice) =>
      setState(
        before =>
          before && {
            ...before,
            conflicts: before.conflicts.map(conflict =>
              conflict.field.path === path ? { ...conflict, choice } : conflict,
            ),
          },
      ),
    save,
    refusalsOf: field =>
      refusals
        .filter(({ path }) => path === field.path || path.startsWith(`${field.path}/`))
        .map(({ message }) => message)
        .join(' ') || undefined,
  }
}

/** The values to write, and the drafts that are no values. A conflict that was decided for the others needs no write. */
function changesOf({ base, drafts, conflicts }: State, fields: readonly Field[]) {
  const given = new Set(conflicts.filter(({ choice }) => choice === 'theirs').map(({ field }) => field.path))
  const changes = new Map<Field, unknown>()
  const faults = new Map<string, DraftFault>()
  for (const field of fields) {
    const draft = drafts.get(field.path)
    if (draft === undefined || given.has(field.path)) continue
    const before = storedValue(field, base)
    const { value, fault } = parseDraft(field, draft)
    if (fault) faults.set(field.path, fault)
    else if (!isEqual(value, before) && !isEqual(draft, draftOf(field, before))) changes.set(field, value)
  }
  return { changes, faults }
}
