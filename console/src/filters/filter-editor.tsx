import { type Definitions, filterLimits, type Segment } from '@kith/client'
import { useState } from 'react'
import { useMessages } from '../app/language.tsx'
import { TextField } from '../ui/field.tsx'
import { Tabs } from '../ui/tabs.tsx'
import { fieldTypesOf, type Owner } from './field-types.ts'
import styles from './filter.module.css'
import { FilterChoicesContext } from './filter-context.ts'
import { isNearLimit, sizeOf } from './filter-size.ts'
import { type Filter, type FilterGroup, newCondition, newGroup } from './filter-tree.ts'
import { GroupFields } from './group-fields.tsx'
import { messages } from './messages.ts'
import { type FieldTypes, readFilter } from './read-filter.ts'
import { writeFilter } from './write-filter.ts'

export type FilterEditorProps = {
  /** The owner of the tested fields: `people`, or the key of a stack. */
  owner: Owner
  definitions: Definitions | undefined
  segments: readonly Segment[]
  /** The initial filter of the editor. To start again, give the editor another `key`. */
  initialFilter: Filter
  /** Called with each filter that the person makes. Undefined while the JSON text is no filter. */
  onChange(filter: Filter | undefined): void
}

/** Edits a filter of the API: as conditions, and as JSON. */
export function FilterEditor({ owner, definitions, segments, initialFilter, onChange }: FilterEditorProps) {
  const texts = useMessages(messages)
  const types = fieldTypesOf(owner, definitions)
  const [tree, setTree] = useState(() => startingTree(initialFilter, types))
  const [view, setView] = useState('builder')
  const changeTree = (next: FilterGroup) => {
    setTree(next)
    onChange(writeFilter(next, types))
  }
  const changeJson = (filter: Filter | undefined) => {
    if (filter) setTree(readFilter(filter, types))
    onChange(filter)
  }
  return (
    <FilterChoicesContext value={{ definitions, segments }}>
      <Tabs
        label={texts.builder}
        selected={view}
        onSelect={setView}
        tabs={[
          {
            id: 'builder',
            label: texts.builder,
            content: (
              <>
                <GroupFields owner={owner} group={tree} onChange={changeTree} />
                <LimitsHint filter={writeFilter(tree, types)} />
              </>
            ),
          },
          {
            id: 'json',
            label: texts.json,
            content: <JsonField initial={writeFilter(tree, types)} onChange={changeJson} />,
          },
        ]}
      />
    </FilterChoicesContext>
  )
}

/** Shows the usage of the API's limits when the filter comes close to one. */
function LimitsHint({ filter }: { filter: Filter }) {
  const texts = useMessages(messages)
  const size = sizeOf(filter)
  return isNearLimit(size) ? <p className={`small ${styles.limits}`}>{texts.limits(size, filterLimits)}</p> : null
}

function startingTree(filter: Filter, types: FieldTypes): FilterGroup {
  const tree = readFilter(filter, types)
  return tree.children.length > 0 ? tree : newGroup(tree.mode, [newCondition()])
}

/** The filter as JSON. A text that is no filter stays in the field, with the reason. */
function JsonField({ initial, onChange }: { initial: Filter; onChange(filter: Filter | undefined): void }) {
  const texts = useMessages(messages)
  const [text, setText] = useState(() => JSON.stringify(initial, null, 2))
  const [error, setError] = useState<string>()
  const change = (next: string) => {
    setText(next)
    const parsed = parse(next, texts)
    setError('error' in parsed ? parsed.error : undefined)
    onChange('filter' in parsed ? parsed.filter : undefined)
  }
  return (
    <TextField label={texts.jsonLabel} help={texts.jsonHelp} rows={12} value={text} error={error} onChange={change} />
  )
}

function parse(text: string, texts: (typeof messages)['en']): { filter: Filter } | { error: string } {
  try {
    const value = (text.trim() === '' ? {} : JSON.parse(text)) as unknown
    const isFilter = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isFilter ? { filter: value as Filter } : { error: texts.notAnObject }
  } catch (error) {
    return { error: texts.syntax((error as Error).message) }
  }
}
