import { type DeclareBody, type Definitions, declarableTypes, type ObservedKey } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client, readQuery } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { LongText } from '../entity/value.tsx'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Checkbox, TextField, useDraft } from '../ui/field.tsx'
import { Loaded } from '../ui/loaded.tsx'
import { EmptyState, Notice } from '../ui/page.tsx'
import { Select } from '../ui/select.tsx'
import { ColumnTable } from '../ui/table.tsx'
import { FitResult, TypeCounts } from './fit-result.tsx'
import { messages } from './messages.ts'
import { OwnerColumns } from './owner-columns.tsx'
import { PreviewedForm } from './previewed-form.tsx'
import styles from './schema.module.css'

/** The undeclared keys of an owner's values. */
const observedQuery = (owner: string) =>
  readQuery(['schema', 'observed', owner], options => client.schema.observed(owner, options))

/** The tab with the undeclared keys of stored values. */
export function ObservedTab({ definitions }: { definitions: Definitions }) {
  return (
    <OwnerColumns definitions={definitions} tab="observed">
      {owner => <ObservedKeys key={owner} owner={owner} />}
    </OwnerColumns>
  )
}

function ObservedKeys({ owner }: { owner: string }) {
  const texts = useMessages(messages)
  const [declared, setDeclared] = useState<ObservedKey>()
  const query = useQuery(observedQuery(owner))
  return (
    <div className={styles.stack}>
      <Loaded query={query}>
        {({ items, truncated }) => (
          <>
            <div className="row centered">
              <p className="small">{texts.observedHelp}</p>
              <Button onPress={() => query.refetch()} isPending={query.isFetching}>
                {texts.readAgain}
              </Button>
            </div>
            {truncated && <Notice kind="caution" title={texts.observedTruncated} />}
            {items.length === 0 ? (
              <EmptyState title={texts.noObserved}>{texts.noObservedAdvice}</EmptyState>
            ) : (
              <ObservedTable items={items} onDeclare={setDeclared} />
            )}
          </>
        )}
      </Loaded>
      {declared && <DeclareDialog owner={owner} observed={declared} onClose={() => setDeclared(undefined)} />}
    </div>
  )
}

function ObservedTable({ items, onDeclare }: { items: readonly ObservedKey[]; onDeclare: (key: ObservedKey) => void }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const mayWrite = useScope('schema:write')
  return (
    <ColumnTable
      label={texts.tabs.observed}
      rows={items}
      rowKey={item => item.key}
      columns={[
        [texts.key, item => <LongText text={item.key} isCode />, 'name'],
        [texts.values, item => formats.number(item.count)],
        [texts.type, item => <TypeCounts types={item.types} />],
        [texts.firstSeen, item => formats.dateTime(item.first_seen)],
        [texts.lastSeen, item => formats.dateTime(item.last_seen)],
        mayWrite && [
          texts.action,
          item =>
            item.declarable ? (
              <Button onPress={() => onDeclare(item)} aria-label={texts.declareKey(item.key)}>
                {texts.declare}
              </Button>
            ) : (
              <span className="small">{texts.notDeclarable}</span>
            ),
        ],
      ]}
    />
  )
}

/** The declaration that most of the observed values fit. */
function likelyDeclaration({ key, types }: ObservedKey) {
  const [type] = Object.entries(types).toSorted(([, one], [, other]) => other - one)[0]!
  const isMany = type === 'array'
  const plain = declarableTypes.find(known => known === type) ?? (isMany ? 'text' : 'json')
  return { type: plain, cardinality: isMany ? ('many' as const) : ('one' as const), indexed: false, name: key }
}

type DeclareDialogProps = { owner: string; observed: ObservedKey; onClose: () => void }

/** Declares an observed key, after it has shown the stored values that would not fit. */
function DeclareDialog({ owner, observed, onClose }: DeclareDialogProps) {
  const texts = useMessages(messages)
  const { draft, field } = useDraft(() => likelyDeclaration(observed))
  const { key } = observed
  return (
    <Dialog title={texts.declareKey(key)} onClose={onClose}>
      <PreviewedForm
        body={{ owner, key, ...draft, name: draft.name.trim() || key }}
        preview={(body: DeclareBody) => client.schema.declare(body, { dryRun: true })}
        result={declared => <FitResult owner={owner} declared={declared} />}
        save={body => client.schema.declare(body)}
        onSaved={onClose}
        action={texts.declare}
        onCancel={onClose}
      >
        <Select
          label={texts.type}
          options={declarableTypes.map(type => ({ value: type, label: texts.types[type] }))}
          {...field('type')}
        />
        <Select label={texts.values} options={{ one: texts.one, many: texts.many }} {...field('cardinality')} />
        <TextField label={texts.name} {...field('name')} />
        <Checkbox help={texts.indexedHelp} {...field('indexed')}>
          {texts.indexed}
        </Checkbox>
      </PreviewedForm>
    </Dialog>
  )
}
