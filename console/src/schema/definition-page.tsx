import type { Attribute, ConsentType } from '@kith/client'
import { type ReactNode, useState } from 'react'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { useDefinitionWrite } from '../entity/schema.ts'
import { Button } from '../ui/button.tsx'
import { Badge, Facts, Page, Problem, Section } from '../ui/page.tsx'
import { messages } from './messages.ts'

type DefinitionPageProps = {
  definition: Attribute | ConsentType
  /** The link to the list of the definition. */
  list: ReactNode
  facts: readonly (readonly [name: string, value: ReactNode])[]
  /** Shown below the facts. */
  details?: ReactNode
  /** The title of the form that changes the definition. */
  edit: string
  form: (close: () => void) => ReactNode
  setState: (state: Attribute['state']) => Promise<unknown>
  /** The text about the effect of archiving or reactivating the definition. */
  stateHelp?: string
  children: ReactNode
}

/** The page of a definition: its facts, its form, the button that archives it, and its further sections. */
export function DefinitionPage({ definition, list, facts, edit, form, ...props }: DefinitionPageProps) {
  const { details, setState, stateHelp, children } = props
  const texts = useMessages(messages)
  const mayWrite = useScope('schema:write')
  const [isEditing, setEditing] = useState(false)
  const archive = useDefinitionWrite(setState)
  const isActive = definition.state === 'active'
  const subtitle = (
    <>
      {list} · <code>{definition.key}</code>
    </>
  )
  return (
    <Page title={definition.name} subtitle={subtitle}>
      {isEditing ? (
        <Section title={edit}>{form(() => setEditing(false))}</Section>
      ) : (
        <Section title={texts.whatItIs}>
          <Facts facts={[...facts, [texts.state, !isActive && <Archived key="state" />]]} />
          {details}
          {mayWrite && (
            <div className="row centered">
              {isActive && <Button onPress={() => setEditing(true)}>{edit}</Button>}
              <Button onPress={() => archive.mutate(isActive ? 'archived' : 'active')} isPending={archive.isPending}>
                {isActive ? texts.archive : texts.activate}
              </Button>
              {stateHelp && <p className="small">{stateHelp}</p>}
            </div>
          )}
          {archive.error && <Problem error={archive.error} />}
        </Section>
      )}
      {children}
    </Page>
  )
}

/** Says that a definition is archived. */
export function Archived() {
  const texts = useMessages(messages)
  return <Badge kind="caution">{texts.archived}</Badge>
}
