// The Helm chart, generated from the kustomize files: the manifests exist once, and the chart adds only values. Pure.

/** Files of the chart by path, with their text. `read` reads a file of the repository. */
export function chartFiles(read: (path: string) => string, version: string): Map<string, string> {
  const base = ["agent-core", "channel-gateway", "migrate", "network-policies", "store", "tool-runner"];
  const files = new Map<string, string>();
  for (const name of base) files.set(`templates/${name}.yaml`, withValues(read(`k8s/base/${name}.yaml`), version));
  const components: [name: string, condition: string, path: string][] = [
    ["autoscalers", "autoscaling.enabled", "k8s/components/hpa/autoscalers.yaml"],
    ["collector-network-policy", "otel.enabled", "k8s/components/otel/network-policy.yaml"],
    ["external-secrets", "externalSecrets.enabled", "k8s/components/external-secrets/secrets.yaml"],
    ["scaled-objects", "keda.enabled", "k8s/components/keda/scaled-objects.yaml"],
    ["web-network-policy", "web.enabled", "k8s/components/web/network-policy.yaml"],
    ["node-local-dns-network-policy", "dns.nodeLocal", "k8s/components/node-local-dns/network-policy.yaml"],
    ["openshift-dns-network-policy", "dns.openshift", "k8s/components/openshift-dns/network-policy.yaml"],
    ["prometheus-pod-monitor", "prometheus.enabled", "k8s/components/prometheus/pod-monitor.yaml"],
    ["prometheus-rules", "prometheus.enabled", "k8s/components/prometheus/rules.yaml"],
    ["prometheus-network-policy", "prometheus.enabled", "k8s/components/prometheus/network-policy.yaml"],
  ];
  for (const [name, condition, path] of components)
    files.set(`templates/${name}.yaml`, when(condition, escaped(read(path))));
  const backup = withImages(escaped(read("k8s/components/backup/backup.yaml")));
  files.set("templates/backup.yaml", when("backup.enabled", backup));
  files.set("templates/deletion-cost.yaml", deletionCost(read("k8s/components/deletion-cost/deletion-cost.yaml")));
  files.set("deletion-cost.mjs", read("k8s/components/deletion-cost/deletion-cost.mjs"));
  files.set("templates/ingress.yaml", ingress(read("k8s/overlays/prod/ingress.yaml")));
  files.set("templates/boards.yaml", boards());
  for (const board of ["channels", "cluster", "cost", "turn"])
    files.set(`boards/${board}.json`, read(`infra/observability/boards/${board}.json`));
  files.set("parley.toml", read("k8s/base/parley.toml"));
  files.set("templates/_helpers.tpl", helpers());
  files.set("templates/settings.yaml", settings());
  files.set("Chart.yaml", chartYaml(version));
  return files;
}

const generated = "# Generated from the kustomize files by infra/charts/write-chart.ts; do not edit.\n";

/** Text of a template that contains no action. */
function escaped(text: string): string {
  return text.replaceAll("{{", '{{ "{{" }}');
}

function when(condition: string, text: string): string {
  return `{{- if .Values.${condition} }}\n${generated}${text}{{- end }}\n`;
}

function withImages(text: string): string {
  return text
    .replace(/^( +)image: parley\/([a-z-]+):\S+$/gm, "$1image: {{ .Values.image.registry }}/$2:{{ .Values.image.tag }}")
    .replaceAll("imagePullPolicy: IfNotPresent", "imagePullPolicy: {{ .Values.image.pullPolicy }}");
}

/** The values of the chart, by the text of the manifests that they replace. A text that is missing is an error. */
function withValues(manifest: string, version: string): string {
  let text = withImages(escaped(manifest))
    .replaceAll(`migrate-${version.replaceAll(".", "-")}`, 'migrate-{{ .Values.image.tag | replace "." "-" }}')
    .replaceAll("name: parley-config", 'name: {{ include "parley.config" . }}');
  const service = /^kind: Deployment\nmetadata:\n {2}name: (\S+)$/m.exec(manifest)?.[1];
  if (service !== undefined) {
    const key = service.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
    const replicas = `  replicas: {{ .Values.replicas.${key} }}`;
    const scaled = service === "channel-gateway" || service === "tool-runner";
    text = replaced(
      text,
      "  replicas: 2",
      scaled
        ? `  {{- if not (or .Values.autoscaling.enabled .Values.keda.enabled) }}\n${replicas}\n  {{- end }}`
        : replicas,
    );
  }
  if (service !== undefined) text = replaced(text, "          env:\n", `          env:\n${variables(service)}`);
  if (service === "channel-gateway")
    text = replaced(text, 'value: "channel-gateway"', 'value: {{ include "parley.allowedHosts" . | quote }}');
  if (service === "tool-runner") {
    text = replaced(
      text,
      "      serviceAccountName: tool-runner\n",
      [
        "      serviceAccountName: tool-runner",
        "      {{- if .Values.gvisor.enabled }}",
        "      runtimeClassName: gvisor",
        "      {{- end }}",
        "",
      ].join("\n"),
    );
    text = replaced(
      text,
      '            - name: PARLEY_EXEC_ISOLATION\n              value: "container"',
      [
        "            {{- if .Values.web.enabled }}",
        "            - name: PARLEY_INTERNET",
        '              value: "true"',
        "            {{- end }}",
        "            - name: PARLEY_EXEC_ISOLATION",
        '              value: {{ ternary .Values.web.execIsolation "container" .Values.web.enabled | quote }}',
      ].join("\n"),
    );
    text = replaced(text, "  accessModes: [ReadWriteMany]", "  accessModes: [{{ .Values.workspace.accessMode }}]");
    text = replaced(
      text,
      "      storage: 10Gi",
      [
        "      storage: {{ .Values.workspace.size }}",
        "  {{- with .Values.workspace.storageClass }}",
        "  storageClassName: {{ . }}",
        "  {{- end }}",
      ].join("\n"),
    );
  }
  return generated + text;
}

/** Variables that components add to a service. */
function variables(service: string): string {
  const added: [condition: string, name: string, value: string][] = [
    ["otel.enabled", "OTEL_EXPORTER_OTLP_ENDPOINT", "{{ .Values.otel.endpoint | quote }}"],
  ];
  if (service === "tool-runner") added.push(["gvisor.enabled", "PARLEY_EXEC_MIN_ISOLATION", '"gvisor"']);
  return added
    .map(
      ([condition, name, value]) =>
        `            {{- if .Values.${condition} }}\n            - name: ${name}\n              value: ${value}\n            {{- end }}\n`,
    )
    .join("");
}

function replaced(text: string, from: string, to: string): string {
  if (!text.includes(from)) throw new Error(`the manifest no longer contains "${from}"`);
  return text.replace(from, () => to);
}

function helpers(): string {
  return `{{- /* Requests through the Ingress name its host. */ -}}
{{- define "parley.allowedHosts" -}}
{{ list .Values.allowedHosts (ternary .Values.ingress.host "" .Values.ingress.enabled) | compact | join "," }}
{{- end -}}
{{- define "parley.settings" -}}
{{ .Values.settings | default (.Files.Get "parley.toml") }}
{{- end -}}
{{- /* The name contains the hash of the content: a change restarts the pods. */ -}}
{{- define "parley.config" -}}
parley-config-{{ include "parley.settings" . | sha256sum | trunc 10 }}
{{- end -}}
`;
}

function settings(): string {
  return `{{- if and .Values.autoscaling.enabled .Values.keda.enabled }}
{{- fail "autoscaling.enabled and keda.enabled scale the same pods: set one of them to false" }}
{{- end }}
${generated}apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "parley.config" . }}
data:
  parley.toml: {{ include "parley.settings" . | toJson }}
`;
}

function ingress(manifest: string): string {
  const text = replaced(
    replaced(
      manifest,
      "    - hosts: [parley.example.com]\n      secretName: parley-tls",
      "    - hosts: [{{ .Values.ingress.host | quote }}]\n      secretName: {{ .Values.ingress.tlsSecret }}",
    ),
    "    - host: parley.example.com",
    "    - host: {{ .Values.ingress.host | quote }}",
  );
  const named = replaced(
    text,
    "    app.kubernetes.io/part-of: parley\nspec:",
    [
      "    app.kubernetes.io/part-of: parley",
      "  {{- with .Values.ingress.annotations }}",
      "  annotations: {{ toJson . }}",
      "  {{- end }}",
      "spec:",
      "  {{- with .Values.ingress.className }}",
      "  ingressClassName: {{ . }}",
      "  {{- end }}",
    ].join("\n"),
  );
  return when("ingress.enabled", named);
}

/** The program is in a ConfigMap; its name contains the hash of the content, as kustomize names it. */
function deletionCost(manifest: string): string {
  const name = 'deletion-cost-{{ .Files.Get "deletion-cost.mjs" | sha256sum | trunc 10 }}';
  const named = replaced(
    withImages(escaped(manifest)),
    "            name: deletion-cost\n",
    `            name: ${name}\n`,
  );
  return when(
    "deletionCost.enabled",
    `${named}---
apiVersion: v1
kind: ConfigMap
metadata:
  name: ${name}
data:
  deletion-cost.mjs: {{ .Files.Get "deletion-cost.mjs" | toJson }}
`,
  );
}

function boards(): string {
  return when(
    "prometheus.enabled",
    `apiVersion: v1
kind: ConfigMap
metadata:
  name: parley-boards
  labels:
    app.kubernetes.io/part-of: parley
    grafana_dashboard: "1"
data:
  {{- range $path, $content := .Files.Glob "boards/*.json" }}
  {{ base $path }}: {{ $content | toString | toJson }}
  {{- end }}
`,
  );
}

function chartYaml(version: string): string {
  return `${generated}apiVersion: v2
name: parley
description: An always-on AI agent that is reached from every channel
type: application
version: ${version}
appVersion: "${version}"
kubeVersion: ">=1.30.0-0"
`;
}
