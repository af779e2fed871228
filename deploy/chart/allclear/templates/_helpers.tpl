{{/* The name in labels and selectors. */}}
{{- define "allclear.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of objects: 40 characters, so that each of ours has room for its ending in 63. */}}
{{- define "allclear.fullname" -}}
{{- $name := include "allclear.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "allclear.account" -}}
{{- default (include "allclear.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "allclear.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/*
What selects our pods. It has no name of a release: one ledger and one Lease belong to one namespace, and so does one release. That is
also what the kustomize trees select, so a Deployment of theirs can become a release's (helm upgrade --install --take-ownership).
*/}}
{{- define "allclear.selected" -}}
app.kubernetes.io/name: {{ include "allclear.name" . }}
{{- end -}}

{{- define "allclear.labels" -}}
{{ include "allclear.selected" . }}
app.kubernetes.io/part-of: allclear
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The namespaces whose workloads are watched, where they are named; a list in JSON. */}}
{{- define "allclear.namespaces" -}}
{{- if .Values.watch.namespaces -}}
{{- toJson .Values.watch.namespaces -}}
{{- else -}}
{{- toJson (list .Release.Namespace) -}}
{{- end -}}
{{- end -}}

{{/* The rules of a file, each with its reason: (list $ "pipelines"). */}}
{{- define "allclear.rules" -}}
{{- $context := index . 0 -}}
{{- $file := $context.Files.Get (printf "files/rules/%s.yaml" (index . 1)) -}}
{{- $role := index (splitList "\n---\n" $file) 0 -}}
rules:
{{ index (splitList "\nrules:\n" $role) 1 | trimSuffix "\n" }}
{{- end -}}

{{/* Gives our account the rules of a file: (list $ "-pipelines" "pipelines"). Everywhere, or in the watched namespaces alone. */}}
{{- define "allclear.grant" -}}
{{- $context := index . 0 -}}
{{- $name := printf "%s%s" (include "allclear.fullname" $context) (index . 1) -}}
{{- $rules := include "allclear.rules" (list $context (index . 2)) -}}
{{- if eq $context.Values.rbac.scope "cluster" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}
  labels:
    {{- include "allclear.labels" $context | nindent 4 }}
{{ $rules }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "allclear.labels" $context | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
  {{- include "allclear.subject" $context | nindent 2 }}
{{- else }}
{{- range include "allclear.namespaces" $context | fromJsonArray }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}
  namespace: {{ . }}
  labels:
    {{- include "allclear.labels" $context | nindent 4 }}
{{ $rules }}
{{ include "allclear.binding" (list $context $name .) }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Binds a Role of a namespace to our account: (list $ "name" "namespace"). */}}
{{- define "allclear.binding" -}}
{{- $context := index . 0 -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ index . 1 }}
  namespace: {{ index . 2 }}
  labels:
    {{- include "allclear.labels" $context | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ index . 1 }}
subjects:
  {{- include "allclear.subject" $context | nindent 2 }}
{{- end -}}

{{- define "allclear.subject" -}}
- kind: ServiceAccount
  name: {{ include "allclear.account" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{/* Peers of a policy: the namespaces with these names. The API server writes the label itself, so no tenant can give it to another. */}}
{{- define "allclear.from" -}}
{{- range . }}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ . }}
{{- end }}
{{- end -}}
