import { type DeclareBody, declarableTypes, type ObservedKey } from '@kith/client'
import { useState } from 'react'
import { client, useWrite } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useDefinitionWrite } from '../entity/schema.ts'
import { Dialog } from '../ui/dialog.tsx'
import { Checkbox, fieldsOf, TextField } from '../ui/field.tsx'
import { Select } from '../ui/select.tsx'
import { FitResult } from './fit-result.tsx'
import { messages } from './messages.ts'
import { PreviewedForm } from './previewed-form.tsx'

type Declaration = Pick<DeclareBody, 'type'> & Required<Pick<DeclareBody, 'cardinality' | 'indexed' | 'name'>>

/** The type that most of the observed values have. */
function likelyDeclaration({ key, types }: ObservedKey): Declaration {
  const [type] = Object.entries(types).toSorted(([, one], [, other]) => other - one)[0]!
  const isMany = type === 'array'
  const plain = declarableTypes.find(known => known === type) ?? (isMany ? 'text' : 'json')
  return { type: plain, cardinality: isMany ? 'many' : 'one', indexed: false, name: key }
}

type DeclareDialogProps = {
  owner: string
  observed: ObservedKey
  onClose: () => void
}

/** Declares an observed key, after it has shown which of the stored values would not fit. */
export function DeclareDialog({ owner, observed, onClose }: DeclareDialogProps) {
  const texts = useMessages(messages)
  const [declaration, setDeclaration] = useState(() => likelyDeclaration(observed))
  const { key } = observed
  const body = { owner, key, ...declaration, name: declaration.name.trim() || key }
  const preview = useWrite((body: DeclareBody) => client.schema.declare(body, { dryRun: true }))
  const declare = useDefinitionWrite((body: DeclareBody) => client.schema.declare(body), onClose)
  const set = (change: Partial<Declaration>) => {
    setDeclaration({ ...declaration, ...change })
    preview.reset()
    declare.reset()
  }
  return (
    <Dialog title={texts.declareKey(key)} onClose={onClose}>
      <PreviewedForm preview={preview} save={declare} body={body} action={texts.declare} onCancel={onClose}>
        <DeclarationFields declaration={declaration} set={set} />
        {preview.isSuccess && <FitResult owner={owner} declared={preview.data} />}
      </PreviewedForm>
    </Dialog>
  )
}

type DeclarationFieldsProps = { declaration: Declaration; set: (change: Partial<Declaration>) => void }

function DeclarationFields({ declaration, set }: DeclarationFieldsProps) {
  const texts = useMessages(messages)
  const field = fieldsOf(declaration, set)
  return (
    <>
      <Select
        label={texts.type}
        options={declarableTypes.map(type => ({ value: type, label: texts.types[type] }))}
        {...field('type')}
      />
      <Select label={texts.cardinality} options={{ one: texts.one, many: texts.many }} {...field('cardinality')} />
      <TextField label={texts.name} {...field('name')} />
      <Checkbox help={texts.indexedHelp} {...field('indexed')}>
        {texts.indexed}
      </Checkbox>
    </>
  )
}
